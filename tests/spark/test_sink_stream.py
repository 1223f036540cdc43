"""Streaming writes with a real Spark: batches, restarts from the checkpoint, and replayed batches."""

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
    """A stream from a directory of text files to a queue; each `run` writes the new files, one file per batch."""

    def __init__(self, spark: SparkSession, directory: Path, **options: str) -> None:
        self._spark = spark
        self._lines = directory / "lines"
        self._lines.mkdir()
        self.checkpoint = directory / "checkpoint"
        self._options = {"checkpointLocation": str(self.checkpoint), "replicate": "1", **options}
        self._written = 0

    def give(self, count: int) -> None:
        """Add a file with `count` lines."""
        lines = range(self._written, self._written + count)
        (self._lines / f"{self._written}.txt").write_text("".join(f"{number}\n" for number in lines))
        self._written += count

    def run(self) -> None:
        """Run the query until all files are written."""
        lines = self._spark.readStream.option("maxFilesPerTrigger", 1).text(str(self._lines))
        bodies = lines.withColumnRenamed("value", "body")
        query = bodies.writeStream.format("disque").options(**self._options).trigger(availableNow=True).start()
        query.awaitTermination()

    def forget_last_commit(self) -> None:
        """Restore the state in which the driver failed after the tasks of the last batch, before its commit."""
        commits = self.checkpoint / "commits"
        last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
        (commits / str(last)).unlink()
        (commits / f".{last}.crc").unlink(missing_ok=True)


@pytest.fixture
def queue() -> str:
    return f"stream-{next(NUMBER)}"


def all_of(count: int) -> list[bytes]:
    return sorted(b"%d" % number for number in range(count))


def test_stream_continues_from_its_checkpoint(
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


def test_replayed_batch_adds_its_rows_again(
    spark: SparkSession, cluster: RealCluster, nodes: str, queue: str, tmp_path: Path
) -> None:
    feed = Feed(spark, tmp_path, nodes=nodes, queue=queue)
    feed.give(100)
    feed.run()
    feed.forget_last_commit()
    feed.run()
    assert bodies(cluster, queue) == sorted(all_of(100) * 2)


def test_replayed_deduplicated_batch_adds_its_rows_once(
    spark: SparkSession, cluster: RealCluster, nodes: str, queue: str, tmp_path: Path
) -> None:
    feed = Feed(spark, tmp_path, nodes=nodes, queue=queue, mode="deduplicated")
    feed.give(100)
    feed.run()
    feed.forget_last_commit()
    feed.give(50)
    feed.run()
    assert bodies(cluster, queue) == all_of(150)


def test_another_query_with_the_same_rows_is_not_deduplicated(
    spark: SparkSession, cluster: RealCluster, nodes: str, queue: str, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        feed = Feed(spark, tmp_path / name, nodes=nodes, queue=queue, mode="deduplicated")
        feed.give(40)
        feed.run()
    assert bodies(cluster, queue) == sorted(all_of(40) * 2)


@pytest.mark.parametrize("mode", ["atLeastOnce", "deduplicated"])
def test_stream_without_nodes_fails_with_the_addresses(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    feed = Feed(spark, tmp_path, nodes=f"127.0.0.1:{free_port()}", queue="q", mode=mode, giveUpAfter="0")
    feed.give(3)
    with pytest.raises(PySparkException, match=r"no row could be added for 0 s, from row 0 on; .* cannot reach any"):
        feed.run()
