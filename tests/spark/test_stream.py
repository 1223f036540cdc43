"""`spark.readStream.format("disque")` with a real Spark and real brokers: every job is a row, then acknowledged."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from disqued.client import Client
from support.cluster import RealCluster, RealNode

PATIENCE_S = 60


class Sent:
    """Jobs that were added, by ID."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}

    def add(self, node: RealNode, queue: str, count: int, retry_s: int = 60, **how: int) -> None:
        bodies = [f"{node.port}-{len(self.bodies)}-{number}".encode() for number in range(count)]
        with Client([node.address], discover=False) as client:
            results = client.add_many(queue, bodies, retry_s=retry_s, **how)  # type: ignore[arg-type]  # by name
        self.bodies.update(zip((str(result) for result in results), bodies, strict=True))


class Received:
    """The rows of each batch, as `foreachBatch` saw them; a batch may be made to fail or to wait."""

    def __init__(self, during: Callable[[int], None] = lambda _: None) -> None:
        self.batches: dict[int, list[dict[str, Any]]] = {}
        self._during = during

    def __call__(self, frame: DataFrame, number: int) -> None:
        self.batches[number] = [row.asDict() for row in frame.collect()]
        self._during(number)

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [row for _, rows in sorted(self.batches.items()) for row in rows]

    @property
    def bodies(self) -> dict[str, bytes]:
        return {row["id"]: bytes(row["body"]) for row in self.rows}


def start(
    spark: SparkSession, nodes: str, checkpoint: str, to: Received, every: str | None = None, **options: str
) -> StreamingQuery:
    """A query that ends, or that begins a batch `every` so often."""
    frame = spark.readStream.format("disque").options(nodes=nodes, **options).load()
    writer = frame.writeStream.foreachBatch(to).option("checkpointLocation", checkpoint)
    return (writer.trigger(availableNow=True) if every is None else writer.trigger(processingTime=every)).start()


def drain(spark: SparkSession, nodes: str, checkpoint: str, to: Received, **options: str) -> StreamingQuery:
    query = start(spark, nodes, checkpoint, to, None, **options)
    assert query.awaitTermination(PATIENCE_S), "it ends"
    return query


def jobs_left(cluster: RealCluster, queue: str) -> int:
    return sum(len(node.call("JSCAN", 0, "COUNT", 100_000, "QUEUE", queue)[1]) for node in cluster.running)


def wait_for_no_jobs(cluster: RealCluster, queue: str) -> None:
    cluster.wait_until(lambda: jobs_left(cluster, queue) == 0, "all jobs are acknowledged everywhere")


def fail_after(number: int) -> Callable[[int], None]:
    def during(current: int) -> None:
        if current == number:
            raise RuntimeError("the batch fails")

    return during


# --- every job is a row -----------------------------------------------------------------------------------------------


def test_what_waits_at_all_nodes_becomes_rows_once_and_is_acknowledged(
    spark: SparkSession, cluster: RealCluster, nodes: str, checkpoint: str
) -> None:
    sent, received = Sent(), Received()
    for node in cluster.nodes:
        sent.add(node, "all", 250)
    query = drain(spark, nodes, checkpoint, received, queue="all", maxJobsPerTrigger="300")
    assert received.bodies == sent.bodies
    assert [len(rows) for rows in received.batches.values()] == [300, 300, 150]
    assert {row["queue"] for row in received.rows} == {"all"}
    wait_for_no_jobs(cluster, "all")
    reported = [json.loads(progress["sources"][0]["latestOffset"]) for progress in query.recentProgress]
    assert reported[0]["waiting"] == 450
    assert set(reported[0]) == {"batch", "waiting", "oldestSeconds"}


def test_the_same_rows_again_after_a_batch_that_failed_and_then_the_next_ones(
    spark: SparkSession, cluster: RealCluster, nodes: str, checkpoint: str
) -> None:
    sent, first, second = Sent(), Received(fail_after(1)), Received()
    for node in cluster.nodes:
        sent.add(node, "again", 100)
    with pytest.raises(StreamingQueryException, match="the batch fails"):
        drain(spark, nodes, checkpoint, first, queue="again", maxJobsPerTrigger="120")
    drain(spark, nodes, checkpoint, second, queue="again", maxJobsPerTrigger="120")
    assert by_id(second.batches[1]) == by_id(first.batches[1])
    assert first.bodies | second.bodies == sent.bodies
    assert sorted(second.batches) == [1, 2], "the first batch is not done again"
    wait_for_no_jobs(cluster, "again")


def by_id(rows: Iterable[dict[str, Any]]) -> list[tuple[str, str, bytes]]:
    return sorted((row["id"], row["queue"], bytes(row["body"])) for row in rows)


def test_a_pattern_reads_queues_of_any_name_and_metadata(
    spark: SparkSession, cluster: RealCluster, nodes: str, checkpoint: str
) -> None:
    node = cluster.nodes[0]
    names = [b"any-plain", "any-\u00fc".encode(), b"any-\xff\xfe"]
    ids = [node.call("ADDJOB", name, b"body \xff", 0).decode() for name in names]
    received = Received()
    drain(spark, nodes, checkpoint, received, queuePattern="any-.*", includeMetadata="true")
    rows = {row["id"]: row for row in received.rows}
    assert [rows[job_id]["queue"] for job_id in ids] == ["any-plain", "any-\u00fc", "any-\\xff\\xfe"]
    assert bytes(rows[ids[0]]["body"]) == b"body \xff"
    assert [rows[ids[0]][name] for name in ("nacks", "additional_deliveries", "node")] == [0, 0, node.id]
    assert rows[ids[0]]["ctime"] is not None
    for name in names:
        cluster.wait_until(lambda name=name: node.call("QLEN", name) == 0)  # type: ignore[misc]  # bound now


# --- rates, lag, leases -----------------------------------------------------------------------------------------------


def test_no_batch_begins_while_fewer_jobs_wait_than_asked_for(
    spark: SparkSession, cluster: RealCluster, nodes: str, checkpoint: str
) -> None:
    sent, received = Sent(), Received()
    sent.add(cluster.nodes[0], "few", 5)
    query = start(spark, nodes, checkpoint, received, "0 seconds", queue="few", minJobsPerTrigger="10")
    try:
        cluster.wait_until(lambda: lag(query).get("waiting") == 5, "the lag is seen")
        assert received.rows == []
        sent.add(cluster.nodes[1], "few", 5)
        cluster.wait_until(lambda: received.bodies == sent.bodies, "ten are enough")
        assert sorted(len(rows) for rows in received.batches.values()) == [0, 10], "Spark begins with an empty one"
        wait_for_no_jobs(cluster, "few")
    finally:
        query.stop()


def lag(query: StreamingQuery) -> dict[str, Any]:
    progress = query.lastProgress
    offset = progress["sources"][0]["latestOffset"] if progress else None
    return json.loads(offset) if offset else {}


def test_a_batch_longer_than_the_retry_time_keeps_its_jobs_and_a_stop_gives_them_back(
    spark: SparkSession, cluster: RealCluster, nodes: str, checkpoint: str
) -> None:
    sent, over = Sent(), threading.Event()
    sent.add(cluster.nodes[0], "long", 50, retry_s=1)

    def wait(_: int) -> None:
        over.wait(PATIENCE_S)

    received = Received(wait)
    query = start(spark, nodes, checkpoint, received, "0 seconds", queue="long")
    try:
        cluster.wait_until(lambda: received.batches, "the batch is being worked on")
        began = cluster.nodes[0].call("TIME")

        def three_seconds_passed() -> bool:
            assert sum(node.call("QLEN", "long") for node in cluster.nodes) == 0, "a lease was lost"
            return int(cluster.nodes[0].call("TIME")[0]) - int(began[0]) > 3

        cluster.wait_until(three_seconds_passed)
        over.set()
        wait_for_no_jobs(cluster, "long")
    finally:
        over.set()
        query.stop()
    assert received.bodies == sent.bodies
    assert len(received.batches) == 1


def test_who_stops_after_a_batch_finds_it_acknowledged_at_the_next_start(
    spark: SparkSession, cluster: RealCluster, nodes: str, checkpoint: str
) -> None:
    """Spark does not call `commit` for a batch that was the last one of a run."""
    sent, received, after = Sent(), Received(), Received()
    sent.add(cluster.nodes[0], "once", 20, retry_s=60)
    query = start(spark, nodes, checkpoint, received, "1 hour", queue="once")
    cluster.wait_until((Path(checkpoint) / "commits" / "0").exists, "the batch is committed")
    assert jobs_left(cluster, "once") > 0
    query.stop()
    drain(spark, nodes, checkpoint, after, queue="once")
    assert (received.bodies, after.batches) == (sent.bodies, {})
    wait_for_no_jobs(cluster, "once")


# --- loss -------------------------------------------------------------------------------------------------------------


def test_a_batch_that_lost_a_job_fails_or_goes_on_without_it_as_was_said(
    spark: SparkSession, cluster: RealCluster, nodes: str, checkpoint: str
) -> None:
    sent, first, second = Sent(), Received(fail_after(0)), Received()
    sent.add(cluster.nodes[0], "lost", 20)
    with pytest.raises(StreamingQueryException, match="the batch fails"):
        drain(spark, nodes, checkpoint, first, queue="lost")
    lost = min(sent.bodies)
    for node in cluster.nodes:
        node.call("DELJOB", lost)
    with pytest.raises(StreamingQueryException, match=rf"1 jobs of this batch are gone: {lost[:10]}.*failOnDataLoss"):
        drain(spark, nodes, checkpoint, second, queue="lost")
    drain(spark, nodes, checkpoint, second, queue="lost", failOnDataLoss="false")
    assert second.bodies == {job_id: body for job_id, body in sent.bodies.items() if job_id != lost}
    wait_for_no_jobs(cluster, "lost")


def test_an_unknown_column_and_a_foreign_checkpoint_are_refused(
    spark: SparkSession, nodes: str, checkpoint: str
) -> None:
    frame = spark.readStream.format("disque").schema("body binary, colour string").options(nodes=nodes, queue="q")
    with pytest.raises(Exception, match="there is no column colour"):
        frame.load().writeStream.format("noop").option("checkpointLocation", checkpoint).start().processAllAvailable()
