"""What the pipeline's benchmark lets Spark do with queues, and what stands beside it.

    python bench/pipeline_workloads.py '{"port": 7711, "executors": 2, "jobs": 100000, "rounds": 3, "memory": []}'

is how `pipeline.py` starts it, once for each number of executors, since a JVM has one session. It prints one line of
JSON: the seconds of each round of each workload. Workloads take turns, each on a node without jobs. Into queues: the
connector in both modes, `foreachPartition` with redis-py's pipelines as one writes it by hand, and the asyncio client
without Spark. Out of queues: the connector's stream, its batch that consumes, `foreachPartition`, the asyncio client.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import redis
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from disqued.client import AsyncClient, Client

QUEUE = "bench"
BODY_BYTES = 100
PIPELINE = 512
LARGE_BODY_BYTES = 10_000
LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class Place:
    """Where and how much: the broker's port, tasks side by side, jobs."""

    spark: SparkSession
    port: int
    executors: int
    jobs: int

    @property
    def nodes(self) -> str:
        """The connector's option."""
        return f"127.0.0.1:{self.port}"

    def rows(self, jobs: int, body_bytes: int, partitions: int) -> DataFrame:
        """A table of bodies that is made while it is read."""
        return self.spark.range(jobs, numPartitions=partitions).select(
            sf.lpad(sf.col("id").cast("string"), body_bytes, "x").alias("body")
        )


# --- into queues ------------------------------------------------------------------------------------------------------


def write(place: Place, mode: str) -> None:
    """The connector."""
    sink = place.rows(place.jobs, BODY_BYTES, place.executors).write.format("disque").mode("append")
    sink.option("nodes", place.nodes).option("queue", QUEUE).option("mode", mode).save()


def _add_by_hand(rows: Iterable[Row], port: int) -> None:
    client: Any = redis.Redis(port=port)
    waiting = iter(rows)
    while part := list(islice(waiting, PIPELINE)):
        pipeline = client.pipeline(transaction=False)
        for row in part:
            pipeline.execute_command("ADDJOB", QUEUE, row.body, 5000)
        pipeline.execute()


def write_by_hand(place: Place) -> None:
    """`foreachPartition` with redis-py."""
    rows = place.rows(place.jobs, BODY_BYTES, place.executors)
    rows.foreachPartition(partial(_add_by_hand, port=place.port))


def add(place: Place) -> None:
    """The asyncio client, without Spark."""

    async def run() -> None:
        async with AsyncClient([place.nodes]) as client:
            await client.add_many(QUEUE, (b"%0*d" % (BODY_BYTES, number) for number in range(place.jobs)))

    asyncio.run(run())


# --- out of queues ----------------------------------------------------------------------------------------------------


def stream(place: Place) -> None:
    """The connector's stream, `availableNow`, into nothing."""
    with tempfile.TemporaryDirectory() as checkpoint:
        jobs = place.spark.readStream.format("disque").option("nodes", place.nodes).option("queue", QUEUE)
        jobs = jobs.option("numPartitions", place.executors).option("maxJobsPerTrigger", max(1000, place.jobs // 5))
        sink = jobs.load().writeStream.format("noop").option("checkpointLocation", checkpoint)
        sink.trigger(availableNow=True).start().awaitTermination()


def consume(place: Place) -> None:
    """The connector's batch that takes jobs out."""
    jobs = place.spark.read.format("disque").option("nodes", place.nodes).option("queue", QUEUE)
    jobs.option("consume", "true").option("numPartitions", place.executors).load().write.format("noop").mode(
        "overwrite"
    ).save()


def _take_by_hand(_: Iterable[Row], port: int) -> None:
    client: Any = redis.Redis(port=port)
    while found := client.execute_command("GETJOB", "NOHANG", "COUNT", PIPELINE, "FROM", QUEUE):
        client.execute_command("ACKJOB", *(job_id for _, job_id, _ in found))


def take_by_hand(place: Place) -> None:
    """`foreachPartition` with redis-py."""
    tasks = place.spark.range(place.executors, numPartitions=place.executors)
    tasks.foreachPartition(partial(_take_by_hand, port=place.port))


def take(place: Place) -> None:
    """The asyncio client, without Spark."""

    async def run() -> None:
        async with AsyncClient([place.nodes]) as client:
            while found := await client.get(QUEUE, count=PIPELINE, nohang=True):
                await client.ack(*(job.id for job in found))

    asyncio.run(run())


INTO: dict[str, Callable[[Place], None]] = {
    "connector, at least once": partial(write, mode="atLeastOnce"),
    "connector, deduplicated": partial(write, mode="deduplicated"),
    "foreachPartition, redis-py": write_by_hand,
    "asyncio client": add,
}
OUT_OF: dict[str, Callable[[Place], None]] = {
    "connector, stream": stream,
    "connector, batch that consumes": consume,
    "foreachPartition, redis-py": take_by_hand,
    "asyncio client": take,
}


def _fill(client: Client, jobs: int) -> None:
    client.execute("DEBUG", "FLUSHALL")
    client.add_many(QUEUE, (b"%0*d" % (BODY_BYTES, number) for number in range(jobs)))


def _timed(work: Callable[[Place], None], place: Place, client: Client, *, left: int) -> float:
    """The seconds that it takes; exits when not all jobs were added or taken."""
    began = time.perf_counter()
    work(place)
    spent_s = time.perf_counter() - began
    if client.qlen(QUEUE) != left:
        raise SystemExit(f"bench: {client.qlen(QUEUE)} jobs wait where {left} should")
    return spent_s


def rounds(place: Place, count: int) -> dict[str, dict[str, list[float]]]:
    """All workloads in turn, `count` times, after one small round that warms Spark up."""
    measured: dict[str, dict[str, list[float]]] = {
        "into": {name: [] for name in INTO},
        "out of": {name: [] for name in OUT_OF},
    }
    warm = Place(place.spark, place.port, place.executors, min(place.jobs, 2000))
    with Client([place.nodes], discover=False, timeout_s=60) as client:
        for which, at in ((-1, warm), *((number, place) for number in range(count))):
            for name, work in INTO.items():
                client.execute("DEBUG", "FLUSHALL")
                spent_s = _timed(work, at, client, left=at.jobs)
                measured["into"][name] += [spent_s] if which >= 0 else []
            for name, work in OUT_OF.items():
                _fill(client, at.jobs)
                spent_s = _timed(work, at, client, left=0)
                measured["out of"][name] += [spent_s] if which >= 0 else []
        client.execute("DEBUG", "FLUSHALL")
    return measured


# --- memory of a task -------------------------------------------------------------------------------------------------


def _workers_peak_kb() -> int:
    """The most that one of this process' Python workers had in memory so far."""
    peaks = [0]
    for directory in Path("/proc").iterdir():
        if directory.name.isdecimal() and int(directory.name) != os.getpid():
            try:
                words = (directory / "cmdline").read_bytes().split(b"\0")
                if words[1] == b"-m" and words[2].startswith(b"pyspark."):
                    status = (directory / "status").read_text()
                    peaks.append(int(status.partition("VmHWM:")[2].split()[0]))
            except (OSError, IndexError):  # it ended meanwhile, or is no worker
                continue
    return max(peaks)


def memory(place: Place, counts: Iterable[int]) -> dict[int, dict[str, int]]:
    """Peak memory, in kB, of the worker of a task that writes so many large jobs from one partition, or reads them."""
    found: dict[int, dict[str, int]] = {}
    for jobs in counts:
        one = Place(place.spark, place.port, 1, jobs)
        rows = place.rows(jobs, LARGE_BODY_BYTES, 1)
        sink = rows.write.format("disque").mode("append").option("nodes", place.nodes).option("queue", QUEUE)
        found[jobs] = {"write": _peak_of(sink.save), "read": _peak_of(partial(consume, one))}
    return found


def _peak_of(work: Callable[[], None]) -> int:
    ended = threading.Event()
    peaks = [0]

    def look() -> None:
        while not ended.wait(LOOK_S):
            peaks.append(_workers_peak_kb())

    looking = threading.Thread(target=look)
    looking.start()
    try:
        work()
    finally:
        ended.set()
        looking.join()
    return max(peaks)


def main(said: dict[str, Any]) -> None:
    """Measure as `said`, and print it."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    executors = said["executors"]
    builder = SparkSession.builder.master(f"local[{executors}]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", str(executors))
    # Each task has a fresh worker, so that the peak of one is not that of the one before.
    builder = builder.config("spark.python.worker.reuse", str(not said["memory"]).lower())
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    place = Place(spark, said["port"], executors, said["jobs"])
    if said["memory"]:
        print(json.dumps(memory(place, said["memory"])))
    else:
        print(json.dumps(rounds(place, said["rounds"])))
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
