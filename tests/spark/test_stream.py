"""`spark.readStream.format("disque")` with a real Spark and real brokers: each job is a row, then acknowledged."""

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

TIMEOUT_S = 60


class Sent:
    """The bodies of added jobs, by ID."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}

    def add(self, node: RealNode, queue: str, count: int, retry_s: int = 60, **how: int) -> None:
        bodies = [f"{node.port}-{len(self.bodies)}-{number}".encode() for number in range(count)]
        with Client([node.address], discover=False) as client:
            results = client.add_many(queue, bodies, retry_s=retry_s, **how)  # type: ignore[arg-type]  # by name
        self.bodies.update(zip((str(result) for result in results), bodies, strict=True))


class Received:
    """The rows of each batch in `foreachBatch`; `during` can fail or delay a batch."""

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
    """Start a query that ends when the queue is drained, or that starts a batch at each interval `every`."""
    frame = spark.readStream.format("disque").options(nodes=nodes, **options).load()
    writer = frame.writeStream.foreachBatch(to).option("checkpointLocation", checkpoint)
    return (writer.trigger(availableNow=True) if every is None else writer.trigger(processingTime=every)).start()


def drain(spark: SparkSession, nodes: str, checkpoint: str, to: Received, **options: str) -> StreamingQuery:
    query = start(spark, nodes, checkpoint, to, None, **options)
    assert query.awaitTermination(TIMEOUT_S), "the query did not end"
    return query


def jobs_left(cluster: RealCluster, queue: str) -> int:
    return sum(len(node.call("JSCAN", 0, "COUNT", 100_000, "QUEUE", queue)[1]) for node in cluster.running)


def wait_for_no_jobs(cluster: RealCluster, queue: str) -> None:
    cluster.wait_until(lambda: jobs_left(cluster, queue) == 0, "all nodes have removed all jobs")


def fail_after(number: int) -> Callable[[int], None]:
    def during(current: int) -> None:
        if current == number:
            raise RuntimeError("the batch fails")

    return during


# --- rows and replays -------------------------------------------------------------------------------------------------


def test_stream_returns_the_jobs_of_all_nodes_once_and_acknowledges_them(
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


@pytest.mark.slow
def test_failed_batch_is_replayed_with_the_same_rows_before_the_next_batch(
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
    assert sorted(second.batches) == [1, 2], "the first batch is not replayed"
    wait_for_no_jobs(cluster, "again")


def by_id(rows: Iterable[dict[str, Any]]) -> list[tuple[str, str, bytes]]:
    return sorted((row["id"], row["queue"], bytes(row["body"])) for row in rows)


def test_pattern_reads_queues_of_any_name_with_metadata(
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


@pytest.mark.slow
def test_stream_reads_priorities_reasons_and_metadata(
    spark: SparkSession, cluster: RealCluster, nodes: str, checkpoint: str
) -> None:
    node = cluster.nodes[0]
    job_id = node.call("ADDJOB", "reasons", "body", 5000, "PRIORITY", -2, "META", "m")
    node.call("GETJOB", "FROM", "reasons")
    node.call("NACK", job_id, "REASON", "time-out")
    received = Received()
    drain(spark, nodes, checkpoint, received, queue="reasons", includeAttributes="true")
    [row] = received.rows
    assert (row["priority"], bytes(row["meta"]), row["attempts"], row["reason"]) == (-2, b"m", 1, "time-out")
    assert (row["origin_queue"], row["attempts_before"], row["dead_since"]) == (None, None, None)


# --- rates, lag, leases -----------------------------------------------------------------------------------------------


def test_batch_starts_only_when_min_jobs_are_queued(
    spark: SparkSession, cluster: RealCluster, nodes: str, checkpoint: str
) -> None:
    sent, received = Sent(), Received()
    sent.add(cluster.nodes[0], "few", 5)
    query = start(spark, nodes, checkpoint, received, "0 seconds", queue="few", minJobsPerTrigger="10")
    try:
        cluster.wait_until(lambda: lag(query).get("waiting") == 5, "the progress has the backlog")
        assert received.rows == []
        sent.add(cluster.nodes[1], "few", 5)
        cluster.wait_until(lambda: received.bodies == sent.bodies, "ten are enough")
        assert sorted(len(rows) for rows in received.batches.values()) == [0, 10], "Spark starts with an empty batch"
        wait_for_no_jobs(cluster, "few")
    finally:
        query.stop()


def lag(query: StreamingQuery) -> dict[str, Any]:
    progress = query.lastProgress
    offset = progress["sources"][0]["latestOffset"] if progress else None
    return json.loads(offset) if offset else {}


@pytest.mark.slow
def test_batch_longer_than_the_retry_time_keeps_its_leases(
    spark: SparkSession, cluster: RealCluster, nodes: str, checkpoint: str
) -> None:
    sent, over = Sent(), threading.Event()
    sent.add(cluster.nodes[0], "long", 50, retry_s=1)

    def wait(_: int) -> None:
        over.wait(TIMEOUT_S)

    received = Received(wait)
    query = start(spark, nodes, checkpoint, received, "0 seconds", queue="long")
    try:
        cluster.wait_until(lambda: received.batches, "the batch is running")
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


@pytest.mark.slow
@pytest.mark.long
def test_last_batch_before_a_stop_is_acknowledged_at_the_next_start(
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


@pytest.mark.slow
@pytest.mark.long
def test_replay_with_a_lost_job_fails_or_continues_as_configured(
    spark: SparkSession, cluster: RealCluster, nodes: str, checkpoint: str
) -> None:
    sent, first, second = Sent(), Received(fail_after(0)), Received()
    sent.add(cluster.nodes[0], "lost", 20)
    with pytest.raises(StreamingQueryException, match="the batch fails"):
        drain(spark, nodes, checkpoint, first, queue="lost")
    lost = min(sent.bodies)
    for node in cluster.nodes:
        node.call("DELJOB", lost)
    with pytest.raises(
        StreamingQueryException, match=rf"1 jobs of this batch no longer exist: {lost[:10]}.*failOnDataLoss"
    ):
        drain(spark, nodes, checkpoint, second, queue="lost")
    drain(spark, nodes, checkpoint, second, queue="lost", failOnDataLoss="false")
    assert second.bodies == {job_id: body for job_id, body in sent.bodies.items() if job_id != lost}
    wait_for_no_jobs(cluster, "lost")


def test_unknown_column_is_rejected(spark: SparkSession, nodes: str, checkpoint: str) -> None:
    frame = spark.readStream.format("disque").schema("body binary, colour string").options(nodes=nodes, queue="q")
    with pytest.raises(Exception, match="unknown column colour"):
        frame.load().writeStream.format("noop").option("checkpointLocation", checkpoint).start().processAllAvailable()
