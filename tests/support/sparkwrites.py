"""Data frames whose tasks do at a certain row what a test wants: wait, fail, die, or be slow. Runs in Spark's workers.

What a task waits for is a file, so that test and task need to know no more of each other than a path.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

from pyspark import TaskContext, cloudpickle
from pyspark.sql import DataFrame, SparkSession

from support.spark import local_spark

BODY_CHARACTERS: Final = 600
PATIENCE_S: Final = 60.0
LOOK_S: Final = 0.02

Happening: TypeAlias = Callable[[int, int], None]
"""Is told partition and attempt."""


def numbers(spark: SparkSession, count: int, partitions: int, at_half: Happening) -> DataFrame:
    """Rows with a `body`, their number and much white space, in partitions; in the middle of each something happens.

    The white space is for the buffers on the way, each of 64 KB: what comes before the middle is to leave them.
    """
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    middle = count // partitions // 2

    def happen(rows: Iterable[int]) -> Iterator[tuple[str]]:
        context = TaskContext.get()
        assert context is not None
        for given, number in enumerate(rows):
            if given == middle:
                at_half(context.partitionId(), context.attemptNumber())
            yield (f"{number:<{BODY_CHARACTERS}}",)

    return spark.sparkContext.range(count, numSlices=partitions).mapPartitions(happen).toDF("body string")


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
    deadline_s = time.monotonic() + PATIENCE_S
    while not path.exists():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"nobody made {path}")
        time.sleep(LOOK_S)


LUCK: Final[dict[str, Callable[[str], Happening]]] = {
    "fail_once": fail_once,
    "die_once": die_once,
    "be_slow_once": be_slow_once,
}
SPECULATION: Final = {
    "spark_speculation": "true",
    "spark_speculation_interval": "100ms",
    "spark_speculation_multiplier": "1.1",
    "spark_speculation_quantile": "0.5",
    "spark_speculation_minTaskRuntime": "100ms",
}


def main(master: str, luck: str, path: str, count: str, nodes: str, queue: str, mode: str) -> None:
    """Write so many rows, in a process of its own with a Spark of its own."""
    with local_spark(master, **SPECULATION) as spark:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
        frame = numbers(spark, int(count), 2, LUCK[luck](path))
        frame.write.format("disque").mode("append").option("nodes", nodes).options(queue=queue, mode=mode).save()


if __name__ == "__main__":
    main(*sys.argv[1:])
