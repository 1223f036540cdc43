"""Data frames whose tasks do at a certain row what a test wants: wait, fail, die, or be slow. Runs in Spark's workers.

What a task waits for is a file, so that test and task need to know no more of each other than a path.
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
TWO_MACHINES: Final = "two machines"
PATIENCE_S: Final = 60.0
LOOK_S: Final = 0.02

Happening: TypeAlias = Callable[[int, int], None]
"""Is told partition and attempt."""


def numbers(spark: SparkSession, count: int, partitions: int, at_half: Happening) -> DataFrame:
    """Rows with a `body`, their number and much white space, in partitions; in the middle of each something happens.

    The white space is for the buffers on the way, each of 64 KB: what comes before the middle is to leave them.
    """
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]  # it has none
    middle = count // partitions // 2

    def happen(rows: Iterable[int]) -> Iterator[tuple[str]]:
        context = TaskContext.get()
        assert context is not None
        for given, number in enumerate(rows):
            if given == middle:
                at_half(context.partitionId(), context.attemptNumber())
            yield (f"{number:<{BODY_CHARACTERS}}",)

    # Not with `toDF`: it belongs to the last session that anything made, foreachBatch for one, and to its settings.
    rows = spark.sparkContext.range(count, numSlices=partitions).mapPartitions(happen)
    return spark.createDataFrame(rows, "body string")


def wait_for(path: str) -> Happening:
    """Says with a file `<path>.<partition>` that it is there, and waits for the file `path`."""

    def happening(partition: int, attempt: int) -> None:  # noqa: ARG001 - each attempt
        Path(f"{path}.{partition}").touch()
        _wait(Path(path))

    return happening


def fail_once(path: str) -> Happening:
    """The first attempt of partition 0 fails, when the file `path` is there."""

    def happening(partition: int, attempt: int) -> None:
        if (partition, attempt) == (0, 0):
            Path(f"{path}.{partition}").touch()
            _wait(Path(path))
            raise RuntimeError("this attempt has bad luck")

    return happening


def die_once(path: str) -> Happening:
    """As `fail_once`, and the process is gone without a word."""

    def happening(partition: int, attempt: int) -> None:
        if (partition, attempt) == (0, 0):
            Path(f"{path}.{partition}").touch()
            _wait(Path(path))
            os._exit(1)

    return happening


def be_slow_once(path: str) -> Happening:
    """As `wait_for`, in the first attempt of partition 0 only: others overtake it."""

    def happening(partition: int, attempt: int) -> None:
        if (partition, attempt) == (0, 0):
            wait_for(path)(partition, attempt)

    return happening


def _wait(path: Path) -> None:
    _until(path.exists, f"somebody makes {path}")


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"not in time: {what}")
        time.sleep(LOOK_S)


LUCK: Final[dict[str, Callable[[str], Happening]]] = {
    "fail_once": fail_once,
    "die_once": die_once,
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
"""The slow attempt has to be overtaken: it must not end by itself and be tried again."""


@contextlib.contextmanager
def two_machines() -> Iterator[str]:
    """The address of a Spark of its own with two workers, which take themselves for two machines.

    Spark starts no second attempt on the machine of the first, so `local-cluster` knows no speculation.
    """
    port = free_port()
    url = f"spark://{LOOPBACK}:{port}"
    spark_class = Path(find_spec("pyspark").origin).parent / "bin" / "spark-class"  # type: ignore[union-attr, arg-type]  # it is imported above
    daemon = [str(spark_class), "org.apache.spark.deploy"]
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())

        def start(kind: str, *words: str) -> None:
            process = subprocess.Popen([daemon[0], f"{daemon[1]}.{kind}", *words, "--webui-port", "0"])
            stack.callback(process.wait)
            stack.callback(process.terminate)

        start("master.Master", "--host", LOOPBACK, "--port", str(port))
        _until(lambda: _is_open(port), f"{url} is open")
        for host in ("127.0.0.2", "127.0.0.3"):
            start("worker.Worker", "--host", host, "-c", "1", "-m", "1g", "-d", f"{directory}/{host}", url)
        yield url


def _is_open(port: int) -> bool:
    with socket.socket() as knock:
        return knock.connect_ex((LOOPBACK, port)) == 0


def main(master: str, luck: str, path: str, count: str, nodes: str, queue: str, mode: str) -> None:
    """Write so many rows, in a process of its own with a Spark of its own."""
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(two_machines()) if master == TWO_MACHINES else master
        spark = stack.enter_context(local_spark(url, **SETTINGS.get(luck, {})))
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
        frame = numbers(spark, int(count), 2, LUCK[luck](path))
        options = {"nodes": nodes, "queue": queue, "mode": mode, "replicate": "1"}
        frame.write.format("disque").mode("append").options(**options).save()


if __name__ == "__main__":
    main(*sys.argv[1:])
