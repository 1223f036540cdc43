"""Batch writes with a real Spark and real nodes: what arrives, what is rejected, and what is rolled back."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, functions

from disqued.client.session import PIPELINE_REQUESTS
from disqued.testing.ports import free_port
from pyspark_disque.addedjobs import encode_ids
from pyspark_disque.options import parse
from pyspark_disque.rows import Layout
from pyspark_disque.sink import BatchSink, CommitMessage, StreamSink, WritePlan
from support.cluster import RealCluster, RealNode
from support.jobs import bodies, jobs
from support.sparkwrites import numbers, wait_for

NUMBER = count()


@pytest.fixture
def queue() -> str:
    return f"queue-{next(NUMBER)}"


@pytest.fixture
def write(nodes: str) -> Callable[..., None]:
    """Append a DataFrame with options; one copy of each job by default, because a busy node may miss a heartbeat."""

    def append(frame: DataFrame, **options: str) -> None:
        copies = {} if "replicate" in frame.columns else {"replicate": "1"}
        frame.write.format("disque").mode("append").options(**{"nodes": nodes, **copies, **options}).save()

    return append


def all_of(count: int) -> list[bytes]:
    return sorted(b"%d" % number for number in range(count))


# --- rows and columns -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_priorities_and_metadata_arrive_and_can_be_read_and_written_again(
    spark: SparkSession, nodes: str, write: Callable[..., None], queue: str
) -> None:
    rows = [("low", -1, b"\x00\xff"), ("plain", None, None), ("high", 9, b"m")]
    write(spark.createDataFrame(rows, "body string, priority int, meta binary"), queue=queue)
    read = spark.read.format("disque").options(nodes=nodes, queue=queue, includeAttributes="true", consume="true")
    write(read.load().drop("queue"), queue=f"{queue}-again")
    again = spark.read.format("disque").options(nodes=nodes, queue=f"{queue}-again", includeAttributes="true").load()
    found = {bytes(row.body): (row.priority, row.meta and bytes(row.meta)) for row in again.collect()}
    assert found == {b"low": (-1, b"\x00\xff"), b"plain": (0, None), b"high": (9, b"m")}


def test_text_and_binary_bodies_arrive_unchanged(
    spark: SparkSession, cluster: RealCluster, write: Callable[..., None], queue: str
) -> None:
    texts = ["", "plain", "ключ и замок", "line\r\nbreak", "\x00", "x" * 100_000]
    write(spark.createDataFrame([(text,) for text in texts], "body string"), queue=f"{queue}-text")
    assert bodies(cluster, f"{queue}-text") == sorted(text.encode() for text in texts)
    blobs = [bytes(range(256)), b"\xff\xfe", b"*1\r\n$4\r\nPING\r\n"]
    write(spark.createDataFrame([(blob,) for blob in blobs], "body binary"), queue=f"{queue}-bytes")
    assert bodies(cluster, f"{queue}-bytes") == sorted(blobs)


def test_rows_go_to_the_queues_of_their_column(
    spark: SparkSession, cluster: RealCluster, write: Callable[..., None], queue: str
) -> None:
    frame = spark.range(30).selectExpr("cast(id as string) as body", f"concat('{queue}-', id % 3) as queue")
    write(frame)
    for kind in range(3):
        assert bodies(cluster, f"{queue}-{kind}") == sorted(b"%d" % number for number in range(kind, 30, 3))
    write(frame, queue=f"{queue}-all")
    assert bodies(cluster, f"{queue}-all") == all_of(30)
    assert len(jobs(cluster, f"{queue}-0")) == 10


def test_columns_set_job_fields_and_null_gives_the_broker_default(
    spark: SparkSession, cluster: RealCluster, write: Callable[..., None], queue: str
) -> None:
    rows = [("set", 60, 120, 3600, 2, 1000), ("default", None, None, None, None, None)]
    columns = "body string, delay int, retry bigint, ttl int, replicate smallint, maxlen int"
    write(spark.createDataFrame(rows, columns), queue=queue)
    shown = {job[b"body"]: job for job in jobs(cluster, queue).values()}
    fields = (b"delay", b"retry", b"repl")
    assert [shown[b"set"][field] for field in fields] == [60, 120, 2]
    assert [shown[b"default"][field] for field in fields] == [0, 300, 3]
    assert 3000 < shown[b"set"][b"ttl"] <= 3600
    assert 86000 < shown[b"default"][b"ttl"] <= 86400


def test_option_overrides_its_column(
    spark: SparkSession, cluster: RealCluster, write: Callable[..., None], queue: str
) -> None:
    write(spark.createDataFrame([("b", 5)], "body string, ttl int"), queue=queue, ttl="1h", retry="90s")
    [job] = jobs(cluster, queue).values()
    assert job[b"retry"] == 90
    assert 3000 < job[b"ttl"] <= 3600


def test_many_rows_of_several_partitions_arrive_once_each(
    spark: SparkSession, cluster: RealCluster, write: Callable[..., None], queue: str
) -> None:
    frame = spark.range(0, 20_000, 1, 5).select(functions.col("id").cast("string").alias("body"))
    write(frame, queue=queue, replicate="1")
    assert bodies(cluster, queue) == all_of(20_000)
    assert all(node.call("QLEN", queue) for node in cluster.nodes)


def test_empty_frame_adds_nothing(
    spark: SparkSession, cluster: RealCluster, write: Callable[..., None], queue: str
) -> None:
    write(spark.createDataFrame([], "body string"), queue=queue)
    assert bodies(cluster, queue) == []


# --- errors -----------------------------------------------------------------------------------------------------------


def test_invalid_write_fails_before_any_task_runs(
    spark: SparkSession, cluster: RealCluster, write: Callable[..., None], nodes: str, queue: str
) -> None:
    frame = spark.createDataFrame([("b",)], "body string")
    with pytest.raises(PySparkException, match="unknown option topic; use queue"):
        write(frame, topic=queue)
    with pytest.raises(PySparkException, match="unknown column value; rename it to body"):
        write(frame.withColumnRenamed("body", "value"), queue=queue)
    with pytest.raises(PySparkException, match="no queue to write to"):
        write(frame)
    with pytest.raises(PySparkException, match=r'cannot overwrite a queue; use \.mode\("append"\)'):
        frame.write.format("disque").mode("overwrite").option("nodes", nodes).option("queue", queue).save()
    with pytest.raises(PySparkException, match="cannot reach any node") as unreachable:
        write(frame, queue=queue, nodes=f"127.0.0.1:{free_port()}", password="open sesame")
    assert "sesame" not in str(unreachable.value)
    assert bodies(cluster, queue) == []


def test_password_is_not_in_the_plan(spark: SparkSession, nodes: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = {"nodes": nodes, "queue": "q", "password": "open sesame"}
    spark.read.format("disque").options(**options).load().explain(extended=True)
    shown = capsys.readouterr().out
    assert "disque" in shown.lower()
    assert "sesame" not in shown


def test_row_without_a_body_fails_the_write_and_rolls_it_back(
    spark: SparkSession, cluster: RealCluster, write: Callable[..., None], queue: str
) -> None:
    body = functions.when(functions.col("id") != 4_999, functions.col("id").cast("string")).alias("body")
    with pytest.raises(PySparkException, match="the column body must not be null: row 4999 of partition 0"):
        write(spark.range(0, 5_000, 1, 1).select(body), queue=queue)
    cluster.wait_until(lambda: bodies(cluster, queue) == [], "the write is rolled back")


def test_row_rejected_by_the_broker_fails_the_write_and_is_named(
    spark: SparkSession, cluster: RealCluster, write: Callable[..., None], queue: str
) -> None:
    frame = spark.createDataFrame([("a", 5), ("b", 0)], "body string, ttl int").coalesce(1)
    with pytest.raises(PySparkException, match="row 1 was rejected; 1 rows of the partition were added: ERR TTL must"):
        write(frame, queue=queue)
    cluster.wait_until(lambda: bodies(cluster, queue) == [], "the write is rolled back")


# --- rollback after another task failed -------------------------------------------------------------------------------


def plan(nodes: str, queue: str, members: tuple[str, ...] = (), **options: str) -> WritePlan:
    given = parse({"nodes": nodes, "queue": queue, **options}, "write")
    return WritePlan(given, Layout(body=0, queue=queue.encode(), key=None, timeout_ms=1, fixed=(), varying=()), members)


@pytest.fixture
def added(cluster: RealCluster, queue: str) -> CommitMessage:
    """The message of a task that added 700 jobs."""
    commands = [("ADDJOB", queue, number, 5000) for number in range(700)]
    with contextlib.closing(cluster.nodes[0].connect()) as client:
        return CommitMessage(700, encode_ids(client.pipeline(commands)))


def test_abort_rolls_back_the_jobs_of_other_tasks(
    cluster: RealCluster, nodes: str, queue: str, added: CommitMessage
) -> None:
    BatchSink(plan(nodes, queue), "w").abort([None, added, None])
    cluster.wait_until(lambda: bodies(cluster, queue) == [], "no node has one")


def test_abort_of_a_stream_rolls_back(cluster: RealCluster, nodes: str, queue: str, added: CommitMessage) -> None:
    StreamSink(plan(nodes, queue)).abort([added], 3)
    cluster.wait_until(lambda: bodies(cluster, queue) == [], "no node has one")


def test_abort_of_an_unnamed_deduplicated_write_rolls_back(
    cluster: RealCluster, nodes: str, queue: str, added: CommitMessage
) -> None:
    BatchSink(plan(nodes, queue, mode="deduplicated"), "new").abort([added])
    cluster.wait_until(lambda: bodies(cluster, queue) == [], "no node has one")


def test_abort_keeps_jobs_that_another_run_finds_by_key(
    cluster: RealCluster, nodes: str, queue: str, added: CommitMessage
) -> None:
    BatchSink(plan(nodes, queue, mode="deduplicated", writeId="w"), "w").abort([added])
    StreamSink(plan(nodes, queue, mode="deduplicated")).abort([added], 3)
    assert len(jobs(cluster, queue)) == 700


def test_abort_keeps_jobs_with_ids_of_their_own(
    cluster: RealCluster, nodes: str, queue: str, added: CommitMessage
) -> None:
    named = replace(plan(nodes, queue), layout=replace(plan(nodes, queue).layout, job_id=1))
    BatchSink(named, "w").abort([added])
    StreamSink(named).abort([added], 3)
    assert len(jobs(cluster, queue)) == 700


def test_abort_without_reachable_node_only_logs_a_warning(
    caplog: pytest.LogCaptureFixture, added: CommitMessage, queue: str
) -> None:
    BatchSink(plan(f"127.0.0.1:{free_port()}", queue), "w").abort([added])
    assert "cannot roll back the jobs of a failed write error=cannot reach any node of 127.0.0.1:" in caplog.text


# --- deduplicated -----------------------------------------------------------------------------------------------------


def test_named_write_adds_each_row_once_when_repeated(
    spark: SparkSession, cluster: RealCluster, write: Callable[..., None], queue: str
) -> None:
    frame = spark.range(0, 3_000, 1, 3).select(functions.col("id").cast("string").alias("body"))
    for _ in range(2):
        write(frame, queue=queue, mode="deduplicated", writeId="nightly")
    assert bodies(cluster, queue) == all_of(3_000)
    write(frame, queue=queue, mode="deduplicated")
    assert len(jobs(cluster, queue)) == 6_000


def test_rows_with_the_same_key_are_one_job_in_any_order(
    spark: SparkSession, cluster: RealCluster, write: Callable[..., None], queue: str
) -> None:
    frame = spark.range(0, 1_000, 1, 2).select(
        functions.col("id").cast("string").alias("body"), functions.col("id").cast("string").alias("key")
    )
    write(frame, queue=queue, mode="deduplicated")
    write(frame.union(frame).orderBy(functions.rand(3)), queue=queue, mode="deduplicated")
    assert bodies(cluster, queue) == all_of(1_000)


# --- faults during a write --------------------------------------------------------------------------------------------


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[RealCluster]:
    (tmp_path / "nodes").mkdir()
    with RealCluster(tmp_path / "nodes", 3, "--appendonly", "yes", "--appendfsync", "always") as found:
        yield found


def write_with_fault(
    spark: SparkSession,
    cluster: RealCluster,
    gate: Path,
    mode: str,
    inject: Callable[[RealNode], None],
    replicate: int,
) -> list[bytes]:
    """Write 2000 rows, inject a fault into a node with some of them halfway, and return the bodies at the end."""
    frame = numbers(spark, 2_000, 2, wait_for(str(gate)))
    options = {"nodes": ",".join(node.address for node in cluster.nodes), "queue": "q", "mode": mode}
    options["replicate"] = str(replicate)
    halves = [Path(f"{gate}.{partition}") for partition in range(2)]

    def inject_halfway() -> None:
        try:
            cluster.wait_until(lambda: all(half.exists() for half in halves), "half of the rows are sent")
            cluster.wait_until(lambda: max(_lengths(cluster)) > 0, "some rows have arrived")
            inject(max(cluster.nodes, key=lambda node: int(node.call("QLEN", "q"))))
        finally:
            gate.touch()

    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    try:
        with ThreadPoolExecutor(1) as thread:
            injected = thread.submit(inject_halfway)
            frame.write.format("disque").mode("append").options(**options).save()
            injected.result()
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    return [body.rstrip() for body in bodies(cluster, "q")]


def _lengths(cluster: RealCluster) -> list[int]:
    return [int(node.call("QLEN", "q")) for node in cluster.nodes]


def kill_and_restart(cluster: RealCluster, gate: Path) -> Callable[[RealNode], None]:
    def inject(node: RealNode) -> None:
        node.kill()
        gate.touch()
        node.restart()
        cluster.wait_until(lambda: node.info()["loading"] == "0", "the log is loaded")
        cluster.wait_whole()

    return inject


@pytest.mark.slow
def test_home_killed_and_restarted_during_a_write_loses_and_duplicates_nothing(
    spark: SparkSession, own_cluster: RealCluster, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    found = write_with_fault(spark, own_cluster, gate, "deduplicated", kill_and_restart(own_cluster, gate), replicate=1)
    assert found == all_of(2_000)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["atLeastOnce", "deduplicated"])
def test_killed_node_with_copies_loses_nothing_and_duplicates_at_most_the_rows_in_flight(
    spark: SparkSession, own_cluster: RealCluster, tmp_path: Path, mode: str
) -> None:
    gate = tmp_path / "gate"
    found = write_with_fault(spark, own_cluster, gate, mode, kill_and_restart(own_cluster, gate), replicate=3)
    assert sorted(set(found)) == all_of(2_000)
    assert len(found) <= 2_000 + 2 * PIPELINE_REQUESTS


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["atLeastOnce", "deduplicated"])
def test_node_that_leaves_during_a_write_loses_and_duplicates_nothing(
    spark: SparkSession, own_cluster: RealCluster, tmp_path: Path, mode: str
) -> None:
    def leave(node: RealNode) -> None:
        assert node.call("CLUSTER", "LEAVING", "yes") == b"OK"

    assert write_with_fault(spark, own_cluster, tmp_path / "gate", mode, leave, replicate=2) == all_of(2_000)
