"""DataFrames whose tasks have a fault at a given row: they wait, fail, exit or are slow. Runs in Spark's workers.

A task waits for a file, so the test and the task share only a path.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final, TypeAlias

from pyspark import TaskContext, cloudpickle
from pyspark.sql import DataFrame, SparkSession

from disqued.testing.ports import LOOPBACK, free_port
from support.spark import local_spark

BODY_CHARACTERS: Final = 600
TWO_HOSTS: Final = "two hosts"
TIMEOUT_S: Final = 60.0
POLL_S: Final = 0.02

Fault: TypeAlias = Callable[[int, int], None]
"""A function of partition and attempt."""


def numbers(spark: SparkSession, count: int, partitions: int, at_half: Fault) -> DataFrame:
    """Return rows with their number as `body`, in partitions; in the middle of each, inject the fault.

    White space pads the bodies, so that the rows before the middle leave the 64 KB buffers between Spark and the task.
    """
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]  # it has none
    middle = count // partitions // 2

    def inject(rows: Iterable[int]) -> Iterator[tuple[str]]:
        context = TaskContext.get()
        assert context is not None
        for given, number in enumerate(rows):
            if given == middle:
                at_half(context.partitionId(), context.attemptNumber())
            yield (f"{number:<{BODY_CHARACTERS}}",)

    # `toDF` would use the last session that anything created, for example foreachBatch, with its settings.
    rows = spark.sparkContext.range(count, numSlices=partitions).mapPartitions(inject)
    return spark.createDataFrame(rows, "body string")


def wait_for(path: str) -> Fault:
    """Create the file `<path>.<partition>`, and wait for the file `path`."""

    def fault(partition: int, attempt: int) -> None:  # noqa: ARG001 - each attempt
        Path(f"{path}.{partition}").touch()
        _wait(Path(path))

    return fault


def fail_once(path: str) -> Fault:
    """Fail the first attempt of partition 0, once the file `path` exists."""

    def fault(partition: int, attempt: int) -> None:
        if (partition, attempt) == (0, 0):
            Path(f"{path}.{partition}").touch()
            _wait(Path(path))
            raise RuntimeError("injected failure")

    return fault


def exit_once(path: str) -> Fault:
    """Exit the process in the first attempt of partition 0, once the file `path` exists."""

    def fault(partition: int, attempt: int) -> None:
        if (partition, attempt) == (0, 0):
            Path(f"{path}.{partition}").touch()
            _wait(Path(path))
            os._exit(1)

    return fault


def be_slow_once(path: str) -> Fault:
    """Wait as in `wait_for`, but only in the first attempt of partition 0, so that another attempt overtakes it."""

    def fault(partition: int, attempt: int) -> None:
        if (partition, attempt) == (0, 0):
            wait_for(path)(partition, attempt)

    return fault


def _wait(path: Path) -> None:
    _until(path.exists, f"{path} exists")


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"timed out after {TIMEOUT_S:g} s waiting until {what}")
        time.sleep(POLL_S)


FAULTS: Final[dict[str, Callable[[str], Fault]]] = {
    "fail_once": fail_once,
    "exit_once": exit_once,
    "be_slow_once": be_slow_once,
}
SETTINGS: Final[dict[str, dict[str, str]]] = {
    "be_slow_once": {
        "spark_speculation": "true",
        "spark_speculation_interval": "100ms",
        "spark_speculation_multiplier": "1.1",
        "spark_speculation_quantile": "0.5",
        "spark_speculation_minTaskRuntime": "100ms",
        "spark_speculation_efficiency_enabled": "false",
        "spark_executor_memory": "512m",
        "spark_task_maxFailures": "1",
    },
}
"""Settings for a fault. A second attempt must overtake the slow one, which must not time out and be retried."""


@contextlib.contextmanager
def two_hosts() -> Iterator[str]:
    """Start a Spark cluster with two workers that appear as two hosts, and yield its URL.

    Spark does not start a second attempt on the host of the first one, so speculation does not work in `local-cluster`.
    """
    port = free_port()
    url = f"spark://{LOOPBACK}:{port}"
    spark_class = Path(find_spec("pyspark").origin).parent / "bin" / "spark-class"  # type: ignore[union-attr, arg-type]  # it is imported above
    daemon = [str(spark_class), "org.apache.spark.deploy"]
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())

        def start(kind: str, *arguments: str) -> None:
            process = subprocess.Popen([daemon[0], f"{daemon[1]}.{kind}", *arguments, "--webui-port", "0"])
            stack.callback(process.wait)
            stack.callback(process.terminate)

        start("master.Master", "--host", LOOPBACK, "--port", str(port))
        _until(lambda: _is_open(port), f"{url} is open")
        for host in ("127.0.0.2", "127.0.0.3"):
            start("worker.Worker", "--host", host, "-c", "1", "-m", "1g", "-d", f"{directory}/{host}", url)
        yield url


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0


def main(master: str, fault: str, path: str, count: str, nodes: str, queue: str, mode: str) -> None:
    """Write `count` rows with a fault, in this process with its own Spark."""
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(two_hosts()) if master == TWO_HOSTS else master
        spark = stack.enter_context(local_spark(url, **SETTINGS.get(fault, {})))
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
        frame = numbers(spark, int(count), 2, FAULTS[fault](path))
        options = {"nodes": nodes, "queue": queue, "mode": mode, "replicate": "1"}
        frame.write.format("disque").mode("append").options(**options).save()


if __name__ == "__main__":
    main(*sys.argv[1:])
