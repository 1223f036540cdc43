"""A million rows pass through a batch write, a stream and a batch read on three nodes; each arrives once."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual alias

from support.cluster import RealCluster

ROWS = 1_000_000
WITHIN_S = 900


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(WITHIN_S)
def test_million_rows_written_streamed_and_read_arrive_once_each(spark: SparkSession, tmp_path: Path) -> None:
    with RealCluster(tmp_path, 3) as cluster:
        at = {"nodes": cluster.nodes[0].address}
        once = {**at, "mode": "deduplicated", "replicate": "1"}
        rows = spark.range(ROWS, numPartitions=8).select(F.col("id").cast("string").alias("body"))
        rows.write.format("disque").options(queue="first", **once).mode("append").save()

        stream = spark.readStream.format("disque").options(queue="first", maxJobsPerTrigger="100000", **at).load()
        second = stream.select("body", F.col("id").alias("key")).writeStream.format("disque")
        query = (
            second.options(queue="second", checkpointLocation=str(tmp_path / "checkpoint"), **once)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

        queued = spark.read.format("disque").options(queues="first,second", **at).load()
        number = F.col("body").cast("string").cast("long")
        [found] = queued.groupBy("queue").agg(F.count("*"), F.countDistinct(number), F.sum(number)).collect()
        assert tuple(found) == ("second", ROWS, ROWS, ROWS * (ROWS - 1) // 2)
