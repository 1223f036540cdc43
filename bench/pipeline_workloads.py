"""The workloads of the pipeline benchmark: the connector, and the code that it is compared with.

    python bench/pipeline_workloads.py \
        '{"port": 7711, "executors": 2, "jobs": {"into": 100000, "out of": 600000}, "rounds": 5, "memory": []}'

`pipeline.py` starts this program once for each number of executors, because a JVM has one session. It prints the
seconds of each round of each workload, as one line of JSON. The workloads take turns, each on a node without jobs.
Those into queues are the connector in both modes, `foreachPartition` with redis-py's pipelines as you might write it
by hand, and the asyncio client without Spark. Those out of queues are the connector's stream, its consuming batch,
`foreachPartition`, and the asyncio client.

For the stream and for `foreachPartition` out of queues, the program also prints the seconds without the start and the
end of the query or the Spark job ("steady"): a stream runs for days, and its start matters once.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import redis
from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from disqued.client import AsyncClient, Client
from disqued.client.wire import encode

QUEUE = "bench"
BODY_BYTES = 100
PIPELINE = 512
WARM_UP_JOBS = 2000
LARGE_BODY_BYTES = 10_000
POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Setup:
    """The parameters of a workload: the session, the port of the broker, concurrent tasks and jobs."""

    spark: SparkSession
    port: int
    executors: int
    jobs: int

    @property
    def nodes(self) -> str:
        """The option `nodes` of the connector."""
        return f"127.0.0.1:{self.port}"

    def rows(self, jobs: int, body_bytes: int, partitions: int) -> DataFrame:
        """Return a table of bodies that is generated while it is read."""
        return self.spark.range(jobs, numPartitions=partitions).select(
            sf.lpad(sf.col("id").cast("string"), body_bytes, "x").alias("body")
        )


# --- into queues ------------------------------------------------------------------------------------------------------


def write(setup: Setup, mode: str) -> None:
    """Write with the connector."""
    sink = setup.rows(setup.jobs, BODY_BYTES, setup.executors).write.format("disque").mode("append")
    sink.option("nodes", setup.nodes).option("queue", QUEUE).option("mode", mode).save()


def _add_by_hand(rows: Iterable[Row], port: int) -> None:
    client: Any = redis.Redis(port=port)
    waiting = iter(rows)
    while part := list(islice(waiting, PIPELINE)):
        pipeline = client.pipeline(transaction=False)
        for row in part:
            pipeline.execute_command("ADDJOB", QUEUE, row.body, 5000)
        pipeline.execute()


def write_by_hand(setup: Setup) -> None:
    """Write with `foreachPartition` and redis-py."""
    rows = setup.rows(setup.jobs, BODY_BYTES, setup.executors)
    rows.foreachPartition(partial(_add_by_hand, port=setup.port))


def add(setup: Setup) -> None:
    """Write with the asyncio client, without Spark."""

    async def run() -> None:
        async with AsyncClient([setup.nodes]) as client:
            await client.add_many(QUEUE, (b"%0*d" % (BODY_BYTES, number) for number in range(setup.jobs)))

    asyncio.run(run())


# --- out of queues ----------------------------------------------------------------------------------------------------


def stream(setup: Setup) -> float:
    """Read with the connector's stream and `availableNow`, into a sink that discards the rows.

    Return the seconds from the start of the first batch to the end of the last one, as Spark reports them.
    """
    with tempfile.TemporaryDirectory() as checkpoint:
        jobs = setup.spark.readStream.format("disque").option("nodes", setup.nodes).option("queue", QUEUE)
        jobs = jobs.option("numPartitions", setup.executors).option("maxJobsPerTrigger", max(1000, setup.jobs // 5))
        sink = jobs.load().writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = sink.trigger(availableNow=True).start()
        query.awaitTermination()
        batches = [progress for progress in query.recentProgress if progress["numInputRows"]]
        spent_ms: int = sum(progress["durationMs"]["triggerExecution"] for progress in batches)
        return spent_ms / 1000


def consume(setup: Setup) -> None:
    """Read with the connector's consuming batch."""
    jobs = setup.spark.read.format("disque").option("nodes", setup.nodes).option("queue", QUEUE)
    jobs.option("consume", "true").option("numPartitions", setup.executors).load().write.format("noop").mode(
        "overwrite"
    ).save()


def _take_by_hand(_: Iterable[Row], port: int, spent_s: Accumulator[float]) -> None:
    began_s = time.perf_counter()
    client: Any = redis.Redis(port=port)
    while found := client.execute_command("GETJOB", "NOHANG", "COUNT", PIPELINE, "FROM", QUEUE):
        client.execute_command("ACKJOB", *(job_id for _, job_id, _ in found))
    spent_s.add(time.perf_counter() - began_s)


def take_by_hand(setup: Setup) -> float:
    """Read with `foreachPartition` and redis-py; return the average seconds within a task."""
    spent_s = setup.spark.sparkContext.accumulator(0.0)
    tasks = setup.spark.range(setup.executors, numPartitions=setup.executors)
    tasks.foreachPartition(partial(_take_by_hand, port=setup.port, spent_s=spent_s))
    return spent_s.value / setup.executors


def take(setup: Setup) -> None:
    """Read with the asyncio client, without Spark."""

    async def run() -> None:
        async with AsyncClient([setup.nodes]) as client:
            while found := await client.get(QUEUE, count=PIPELINE, nohang=True):
                await client.ack(*(job.id for job in found))

    asyncio.run(run())


INTO: dict[str, Callable[[Setup], float | None]] = {
    "connector, at least once": partial(write, mode="atLeastOnce"),
    "connector, deduplicated": partial(write, mode="deduplicated"),
    "foreachPartition, redis-py": write_by_hand,
    "asyncio client": add,
}
OUT_OF: dict[str, Callable[[Setup], float | None]] = {
    "connector, stream": stream,
    "connector, consuming batch": consume,
    "foreachPartition, redis-py": take_by_hand,
    "asyncio client": take,
}


def _fill(client: Client, port: int, jobs: int) -> None:
    """Replace all jobs by new ones. Written without the client, because this takes longer than most workloads."""
    client.execute("DEBUG", "FLUSHALL")
    with socket.create_connection(("127.0.0.1", port)) as link, link.makefile("rb") as replies:
        for first in range(0, jobs, PIPELINE):
            numbers = range(first, min(first + PIPELINE, jobs))
            link.sendall(b"".join(encode(("ADDJOB", QUEUE, b"%0*d" % (BODY_BYTES, at), 5000)) for at in numbers))
            for _ in numbers:
                if not replies.readline().startswith(b"+"):
                    raise SystemExit("bench: the broker refuses a job")


def _timed(
    work: Callable[[Setup], float | None], setup: Setup, client: Client, *, left: int
) -> tuple[float, float | None]:
    """Return the seconds that a workload takes, and what it returns; exit if it did not add or read all jobs."""
    began = time.perf_counter()
    steady_s = work(setup)
    spent_s = time.perf_counter() - began
    if client.qlen(QUEUE) != left:
        raise SystemExit(f"bench: {client.qlen(QUEUE)} jobs are queued instead of {left}")
    return spent_s, steady_s


def rounds(setup: Setup, jobs: dict[str, int], count: int) -> dict[str, dict[str, list[float]]]:
    """Run all workloads in turn, `count` times, with as many jobs into and out of queues.

    A smaller round first warms up Spark.
    """
    measured: dict[str, dict[str, list[float]]] = {
        "into": {name: [] for name in INTO},
        "out of": {name: [] for name in OUT_OF},
        "steady": {},
    }
    with Client([setup.nodes], discover=False, timeout_s=60) as client:
        for which in range(-1, count):
            into, out_of = (
                replace(setup, jobs=jobs[direction] if which >= 0 else min(jobs[direction], WARM_UP_JOBS))
                for direction in ("into", "out of")
            )
            for name, work in INTO.items():
                client.execute("DEBUG", "FLUSHALL")
                spent_s, _ = _timed(work, into, client, left=into.jobs)
                measured["into"][name] += [spent_s] if which >= 0 else []
            for name, work in OUT_OF.items():
                _fill(client, setup.port, out_of.jobs)
                spent_s, steady_s = _timed(work, out_of, client, left=0)
                measured["out of"][name] += [spent_s] if which >= 0 else []
                if which >= 0 and steady_s is not None:
                    measured["steady"].setdefault(name, []).append(steady_s)
        client.execute("DEBUG", "FLUSHALL")
    return measured


# --- memory of a task -------------------------------------------------------------------------------------------------


def _workers_peak_kb() -> int:
    """Return the peak memory of any Python worker of this process so far, in kB."""
    peaks = [0]
    for directory in Path("/proc").iterdir():
        if directory.name.isdecimal() and int(directory.name) != os.getpid():
            try:
                words = (directory / "cmdline").read_bytes().split(b"\0")
                if words[1] == b"-m" and words[2].startswith(b"pyspark."):
                    status = (directory / "status").read_text()
                    peaks.append(int(status.partition("VmHWM:")[2].split()[0]))
            except (OSError, IndexError):  # the process ended meanwhile, or is not a worker
                continue
    return max(peaks)


def memory(setup: Setup, counts: Iterable[int]) -> dict[int, dict[str, int]]:
    """Return the peak memory in kB of a worker that writes, or reads, large jobs in one partition, by their number."""
    found: dict[int, dict[str, int]] = {}
    for jobs in counts:
        one = Setup(setup.spark, setup.port, 1, jobs)
        rows = setup.rows(jobs, LARGE_BODY_BYTES, 1)
        sink = rows.write.format("disque").mode("append").option("nodes", setup.nodes).option("queue", QUEUE)
        found[jobs] = {"write": _peak_of(sink.save), "read": _peak_of(partial(consume, one))}
    return found


def _peak_of(work: Callable[[], None]) -> int:
    ended = threading.Event()
    peaks = [0]

    def sample() -> None:
        while not ended.wait(POLL_S):
            peaks.append(_workers_peak_kb())

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        work()
    finally:
        ended.set()
        sampler.join()
    return max(peaks)


def main(parameters: dict[str, Any]) -> None:
    """Measure with these parameters, and print the results."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    executors = parameters["executors"]
    builder = SparkSession.builder.master(f"local[{executors}]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", str(executors))
    # Each task has a new worker, so its peak does not include that of an earlier task.
    builder = builder.config("spark.python.worker.reuse", str(not parameters["memory"]).lower())
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    setup = Setup(spark, parameters["port"], executors, 0)
    if parameters["memory"]:
        print(json.dumps(memory(setup, parameters["memory"])))
    else:
        print(json.dumps(rounds(setup, parameters["jobs"], parameters["rounds"])))
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
