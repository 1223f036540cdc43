"""Streams into queues with a real Spark: batches, restarts from the checkpoint, and a batch that runs again."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from disqued.testing.ports import free_port
from support.cluster import RealCluster
from support.jobs import bodies

NUMBER = count()


class Feed:
    """A stream from a directory of text files into a queue; each `run` writes what is new, a file a batch."""

    def __init__(self, spark: SparkSession, directory: Path, **options: str) -> None:
        self._spark = spark
        self._lines = directory / "lines"
        self._lines.mkdir()
        self.checkpoint = directory / "checkpoint"
        self._options = {"checkpointLocation": str(self.checkpoint), "replicate": "1", **options}
        self._written = 0

    def give(self, count: int) -> None:
        """One more file with so many lines."""
        lines = range(self._written, self._written + count)
        (self._lines / f"{self._written}.txt").write_text("".join(f"{number}\n" for number in lines))
        self._written += count

    def run(self) -> None:
        """Until all that was given is written."""
        lines = self._spark.readStream.option("maxFilesPerTrigger", 1).text(str(self._lines))
        bodies = lines.withColumnRenamed("value", "body")
        query = bodies.writeStream.format("disque").options(**self._options).trigger(availableNow=True).start()
        query.awaitTermination()

    def forget_last_commit(self) -> None:
        """As if the driver had died after the tasks of the last batch, before Spark noted that it is done."""
        commits = self.checkpoint / "commits"
        last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
        (commits / str(last)).unlink()
        (commits / f".{last}.crc").unlink(missing_ok=True)


@pytest.fixture
def queue() -> str:
    return f"stream-{next(NUMBER)}"


def all_of(count: int) -> list[bytes]:
    return sorted(b"%d" % number for number in range(count))


def test_a_stream_goes_on_from_its_checkpoint(
    spark: SparkSession, cluster: RealCluster, nodes: str, queue: str, tmp_path: Path
) -> None:
    feed = Feed(spark, tmp_path, nodes=nodes, queue=queue)
    feed.give(300)
    feed.give(200)
    feed.run()
    assert bodies(cluster, queue) == all_of(500)
    feed.give(100)
    feed.run()
    assert bodies(cluster, queue) == all_of(600)


def test_a_batch_that_runs_again_adds_its_rows_again(
    spark: SparkSession, cluster: RealCluster, nodes: str, queue: str, tmp_path: Path
) -> None:
    feed = Feed(spark, tmp_path, nodes=nodes, queue=queue)
    feed.give(100)
    feed.run()
    feed.forget_last_commit()
    feed.run()
    assert bodies(cluster, queue) == sorted(all_of(100) * 2)


def test_deduplicated_it_adds_them_once_and_later_batches_too(
    spark: SparkSession, cluster: RealCluster, nodes: str, queue: str, tmp_path: Path
) -> None:
    feed = Feed(spark, tmp_path, nodes=nodes, queue=queue, mode="deduplicated")
    feed.give(100)
    feed.run()
    feed.forget_last_commit()
    feed.give(50)
    feed.run()
    assert bodies(cluster, queue) == all_of(150)


def test_another_query_with_the_same_rows_is_not_taken_for_the_first(
    spark: SparkSession, cluster: RealCluster, nodes: str, queue: str, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        feed = Feed(spark, tmp_path / name, nodes=nodes, queue=queue, mode="deduplicated")
        feed.give(40)
        feed.run()
    assert bodies(cluster, queue) == sorted(all_of(40) * 2)


@pytest.mark.parametrize("mode", ["atLeastOnce", "deduplicated"])
def test_a_stream_without_a_cluster_fails_with_what_was_tried(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    feed = Feed(spark, tmp_path, nodes=f"127.0.0.1:{free_port()}", queue="q", mode=mode, giveUpAfter="0")
    feed.give(3)
    with pytest.raises(PySparkException, match=r"nothing could be added for 0 s, from row 0 on; .* can be reached"):
        feed.run()
