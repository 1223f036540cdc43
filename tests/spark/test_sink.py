"""Data frames into queues with a real Spark and real nodes: what arrives, what is refused, what is taken back."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, functions

from disqued.client.session import PIPELINE_REQUESTS
from disqued.testing.ports import free_port
from pyspark_disque.added import pack
from pyspark_disque.options import parse
from pyspark_disque.rows import Layout
from pyspark_disque.sink import Added, BatchSink, Plan, StreamSink
from support.cluster import RealCluster, RealNode
from support.jobs import bodies, jobs
from support.sparkwrites import numbers, wait_for

NUMBER = count()


@pytest.fixture
def queue() -> str:
    return f"queue-{next(NUMBER)}"


@pytest.fixture
def write(nodes: str) -> Callable[..., None]:
    """Appends a data frame with options. One copy of each job, if nothing is said: a busy machine may miss a node."""

    def append(frame: DataFrame, **options: str) -> None:
        copies = {} if "replicate" in frame.columns else {"replicate": "1"}
        frame.write.format("disque").mode("append").options(**{"nodes": nodes, **copies, **options}).save()

    return append


def all_of(count: int) -> list[bytes]:
    return sorted(b"%d" % number for number in range(count))


# --- what arrives -----------------------------------------------------------------------------------------------------


def test_text_and_bytes_arrive_as_they_were(
    spark: SparkSession, cluster: RealCluster, write: Callable[..., None], queue: str
) -> None:
    texts = ["", "plain", "ключ и замок", "line\r\nbreak", "\x00", "x" * 100_000]
    write(spark.createDataFrame([(text,) for text in texts], "body string"), queue=f"{queue}-text")
    assert bodies(cluster, f"{queue}-text") == sorted(text.encode() for text in texts)
    blobs = [bytes(range(256)), b"\xff\xfe", b"*1\r\n$4\r\nPING\r\n"]
    write(spark.createDataFrame([(blob,) for blob in blobs], "body binary"), queue=f"{queue}-bytes")
    assert bodies(cluster, f"{queue}-bytes") == sorted(blobs)


def test_rows_go_to_the_queues_that_they_name(
    spark: SparkSession, cluster: RealCluster, write: Callable[..., None], queue: str
) -> None:
    frame = spark.range(30).selectExpr("cast(id as string) as body", f"concat('{queue}-', id % 3) as queue")
    write(frame)
    for kind in range(3):
        assert bodies(cluster, f"{queue}-{kind}") == sorted(b"%d" % number for number in range(kind, 30, 3))
    write(frame, queue=f"{queue}-all")
    assert bodies(cluster, f"{queue}-all") == all_of(30)
    assert len(jobs(cluster, f"{queue}-0")) == 10


def test_every_column_is_seen_on_the_job_and_null_is_the_brokers_default(
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


def test_an_option_wins_over_its_column(
    spark: SparkSession, cluster: RealCluster, write: Callable[..., None], queue: str
) -> None:
    write(spark.createDataFrame([("b", 5)], "body string, ttl int"), queue=queue, ttl="1h", retry="90s")
    [job] = jobs(cluster, queue).values()
    assert job[b"retry"] == 90
    assert 3000 < job[b"ttl"] <= 3600


def test_many_rows_of_many_partitions_arrive_once_each(
    spark: SparkSession, cluster: RealCluster, write: Callable[..., None], queue: str
) -> None:
    frame = spark.range(0, 20_000, 1, 5).select(functions.col("id").cast("string").alias("body"))
    write(frame, queue=queue, replicate="1")
    assert bodies(cluster, queue) == all_of(20_000)
    assert all(node.call("QLEN", queue) for node in cluster.nodes)


def test_an_empty_frame_adds_nothing(
    spark: SparkSession, cluster: RealCluster, write: Callable[..., None], queue: str
) -> None:
    write(spark.createDataFrame([], "body string"), queue=queue)
    assert bodies(cluster, queue) == []


# --- what is refused --------------------------------------------------------------------------------------------------


def test_what_is_wrong_is_said_before_any_task_runs(
    spark: SparkSession, cluster: RealCluster, write: Callable[..., None], nodes: str, queue: str
) -> None:
    frame = spark.createDataFrame([("b",)], "body string")
    with pytest.raises(PySparkException, match="there is no option topic: it is called queue here"):
        write(frame, topic=queue)
    with pytest.raises(PySparkException, match="a job has no column value: it is called body here"):
        write(frame.withColumnRenamed("body", "value"), queue=queue)
    with pytest.raises(PySparkException, match="say where to write"):
        write(frame)
    with pytest.raises(PySparkException, match=r'a queue can not be overwritten: write with \.mode\("append"\)'):
        frame.write.format("disque").mode("overwrite").option("nodes", nodes).option("queue", queue).save()
    with pytest.raises(PySparkException, match="can be reached") as unreachable:
        write(frame, queue=queue, nodes=f"127.0.0.1:{free_port()}", password="open sesame")
    assert "sesame" not in str(unreachable.value)
    assert bodies(cluster, queue) == []


def test_a_password_is_in_no_plan(spark: SparkSession, nodes: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = {"nodes": nodes, "queue": "q", "password": "open sesame"}
    spark.read.format("disque").options(**options).load().explain(extended=True)
    shown = capsys.readouterr().out
    assert "disque" in shown.lower()
    assert "sesame" not in shown


def test_a_row_that_is_no_job_fails_the_write_and_what_was_added_is_taken_back(
    spark: SparkSession, cluster: RealCluster, write: Callable[..., None], queue: str
) -> None:
    body = functions.when(functions.col("id") != 4_999, functions.col("id").cast("string")).alias("body")
    with pytest.raises(PySparkException, match="the column body is null in row 4999 of partition 0"):
        write(spark.range(0, 5_000, 1, 1).select(body), queue=queue)
    cluster.wait_until(lambda: bodies(cluster, queue) == [], "it is taken back")


def test_a_row_that_the_broker_refuses_is_named(
    spark: SparkSession, cluster: RealCluster, write: Callable[..., None], queue: str
) -> None:
    frame = spark.createDataFrame([("a", 5), ("b", 0)], "body string, ttl int").coalesce(1)
    with pytest.raises(PySparkException, match="row 1 was refused, 1 rows of the partition were added: ERR TTL must"):
        write(frame, queue=queue)
    cluster.wait_until(lambda: bodies(cluster, queue) == [], "it is taken back")


# --- what is taken back when another task fails -----------------------------------------------------------------------


def plan(nodes: str, queue: str, members: tuple[str, ...] = (), **options: str) -> Plan:
    given = parse({"nodes": nodes, "queue": queue, **options}, "write")
    return Plan(given, Layout(body=0, queue=queue.encode(), key=None, timeout_ms=1, fixed=(), varying=()), members)


@pytest.fixture
def added(cluster: RealCluster, queue: str) -> Added:
    """What a task said that added 700 jobs."""
    commands = [("ADDJOB", queue, number, 5000) for number in range(700)]
    with contextlib.closing(cluster.nodes[0].connect()) as client:
        return Added(700, pack(client.pipeline(commands)))


def test_abort_finishes_what_other_tasks_added(cluster: RealCluster, nodes: str, queue: str, added: Added) -> None:
    BatchSink(plan(nodes, queue), "w").abort([None, added, None])
    cluster.wait_until(lambda: bodies(cluster, queue) == [], "no node has one")


def test_abort_of_a_stream_finishes_them_too(cluster: RealCluster, nodes: str, queue: str, added: Added) -> None:
    StreamSink(plan(nodes, queue)).abort([added], 3)
    cluster.wait_until(lambda: bodies(cluster, queue) == [], "no node has one")


def test_abort_of_a_write_that_nobody_can_repeat_finishes_them_too(
    cluster: RealCluster, nodes: str, queue: str, added: Added
) -> None:
    BatchSink(plan(nodes, queue, mode="deduplicated"), "new").abort([added])
    cluster.wait_until(lambda: bodies(cluster, queue) == [], "no node has one")


def test_abort_keeps_what_another_run_would_find_by_its_key(
    cluster: RealCluster, nodes: str, queue: str, added: Added
) -> None:
    BatchSink(plan(nodes, queue, mode="deduplicated", writeId="w"), "w").abort([added])
    StreamSink(plan(nodes, queue, mode="deduplicated")).abort([added], 3)
    assert len(jobs(cluster, queue)) == 700


def test_abort_when_no_node_can_be_reached_says_no_more_than_a_line_in_the_log(
    caplog: pytest.LogCaptureFixture, added: Added, queue: str
) -> None:
    BatchSink(plan(f"127.0.0.1:{free_port()}", queue), "w").abort([added])
    assert "what was added could not be taken back: no node of 127.0.0.1:" in caplog.text


# --- deduplicated -----------------------------------------------------------------------------------------------------


def test_a_write_with_a_name_adds_each_row_once_however_often_it_runs(
    spark: SparkSession, cluster: RealCluster, write: Callable[..., None], queue: str
) -> None:
    frame = spark.range(0, 3_000, 1, 3).select(functions.col("id").cast("string").alias("body"))
    for _ in range(2):
        write(frame, queue=queue, mode="deduplicated", writeId="nightly")
    assert bodies(cluster, queue) == all_of(3_000)
    write(frame, queue=queue, mode="deduplicated")
    assert len(jobs(cluster, queue)) == 6_000


def test_rows_with_the_same_key_are_one_job_whatever_their_order(
    spark: SparkSession, cluster: RealCluster, write: Callable[..., None], queue: str
) -> None:
    frame = spark.range(0, 1_000, 1, 2).select(
        functions.col("id").cast("string").alias("body"), functions.col("id").cast("string").alias("key")
    )
    write(frame, queue=queue, mode="deduplicated")
    write(frame.union(frame).orderBy(functions.rand(3)), queue=queue, mode="deduplicated")
    assert bodies(cluster, queue) == all_of(1_000)


# --- a node in trouble under a write ----------------------------------------------------------------------------------


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[RealCluster]:
    (tmp_path / "nodes").mkdir()
    with RealCluster(tmp_path / "nodes", 3, "--appendonly", "yes", "--appendfsync", "always") as found:
        yield found


def write_with_trouble(
    spark: SparkSession,
    cluster: RealCluster,
    gate: Path,
    mode: str,
    trouble: Callable[[RealNode], None],
    replicate: int,
) -> list[bytes]:
    """Write 2000 rows; when half are on their way a node that took some gets into trouble. The bodies in the end."""
    frame = numbers(spark, 2_000, 2, wait_for(str(gate)))
    options = {"nodes": ",".join(node.address for node in cluster.nodes), "queue": "q", "mode": mode}
    options["replicate"] = str(replicate)
    halves = [Path(f"{gate}.{partition}") for partition in range(2)]

    def make_trouble() -> None:
        try:
            cluster.wait_until(lambda: all(half.exists() for half in halves), "half is on its way")
            cluster.wait_until(lambda: max(_lengths(cluster)) > 0, "some have arrived")
            trouble(max(cluster.nodes, key=lambda node: int(node.call("QLEN", "q"))))
        finally:
            gate.touch()

    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    try:
        with ThreadPoolExecutor(1) as thread:
            made = thread.submit(make_trouble)
            frame.write.format("disque").mode("append").options(**options).save()
            made.result()
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    return [body.rstrip() for body in bodies(cluster, "q")]


def _lengths(cluster: RealCluster) -> list[int]:
    return [int(node.call("QLEN", "q")) for node in cluster.nodes]


def kill_and_restart(cluster: RealCluster, gate: Path) -> Callable[[RealNode], None]:
    def trouble(node: RealNode) -> None:
        node.kill()
        gate.touch()
        node.restart()
        cluster.wait_until(lambda: node.info()["loading"] == "0", "it has read its log")
        cluster.wait_whole()

    return trouble


def test_a_home_killed_and_restarted_under_a_write_loses_and_doubles_nothing(
    spark: SparkSession, mortal: RealCluster, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    found = write_with_trouble(spark, mortal, gate, "deduplicated", kill_and_restart(mortal, gate), replicate=1)
    assert found == all_of(2_000)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["atLeastOnce", "deduplicated"])
def test_with_copies_it_loses_nothing_and_doubles_at_most_what_was_on_its_way(
    spark: SparkSession, mortal: RealCluster, tmp_path: Path, mode: str
) -> None:
    gate = tmp_path / "gate"
    found = write_with_trouble(spark, mortal, gate, mode, kill_and_restart(mortal, gate), replicate=3)
    assert sorted(set(found)) == all_of(2_000)
    assert len(found) <= 2_000 + 2 * PIPELINE_REQUESTS


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["atLeastOnce", "deduplicated"])
def test_a_node_that_leaves_under_a_write_costs_nothing(
    spark: SparkSession, mortal: RealCluster, tmp_path: Path, mode: str
) -> None:
    def leave(node: RealNode) -> None:
        assert node.call("CLUSTER", "LEAVING", "yes") == b"OK"

    assert write_with_trouble(spark, mortal, tmp_path / "gate", mode, leave, replicate=2) == all_of(2_000)
