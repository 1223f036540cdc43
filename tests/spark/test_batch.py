"""`spark.read.format("disque")`: a snapshot leaves jobs in the queue, a consuming read removes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from disqued.client import Client
from pyspark_disque.brokers import Member
from pyspark_disque.consume import ConsumeTask, run_consume
from pyspark_disque.jobreader import Backlog
from pyspark_disque.options import Options
from pyspark_disque.snapshot import ScanFilter, plan_scan
from support.cluster import RealCluster, RealNode

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def add(node: RealNode, queue: str, count: int, retry_s: int = 60, **how: int) -> dict[str, bytes]:
    bodies = [f"{queue}-{node.port}-{number}".encode() for number in range(count)]
    with Client([node.address], discover=False) as client:
        results = client.add_many(queue, bodies, retry_s=retry_s, **how)  # type: ignore[arg-type]  # options by name
    return dict(zip((str(result) for result in results), bodies, strict=True))


def read(spark: SparkSession, nodes: str, **options: str) -> DataFrame:
    return spark.read.format("disque").options(nodes=nodes, **options).load()


def bodies(frame: DataFrame) -> dict[str, bytes]:
    rows = frame.select("id", "body").collect()
    found = {row.id: bytes(row.body) for row in rows}
    assert len(found) == len(rows), "duplicate rows"
    return found


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.unset(name)


@pytest.fixture
def empty(cluster: RealCluster) -> RealCluster:
    """The shared cluster without jobs."""
    for node in cluster.nodes:
        node.call("DEBUG", "FLUSHALL")
    return cluster


def waiting(cluster: RealCluster, queue: str) -> int:
    return sum(node.call("QLEN", queue) for node in cluster.nodes)


# --- snapshots --------------------------------------------------------------------------------------------------------


def test_snapshot_has_the_queued_jobs_of_all_nodes_and_leaves_them_queued(
    spark: SparkSession, empty: RealCluster, nodes: str
) -> None:
    added: dict[str, bytes] = {}
    for node in empty.nodes:
        added |= add(node, "a", 700)
        add(node, "b", 5)
    frame = read(spark, nodes, queue="a")
    assert bodies(frame) == added
    assert frame.rdd.getNumPartitions() == 3
    assert waiting(empty, "a") == 2100


@pytest.mark.parametrize("pushdown", ["true", "false"])
def test_filters_give_the_same_rows_with_and_without_push_down(
    spark: SparkSession, empty: RealCluster, nodes: str, pushdown: str
) -> None:
    added = {queue: add(empty.nodes[0], queue, 20) for queue in ("a", "b", "c")}
    with setting(spark, PUSHDOWN, pushdown):

        def filtered(condition: str) -> DataFrame:
            """Load a new frame: a frame keeps the plan of its last filter."""
            return read(spark, nodes, queuePattern="[abc]", pushDownFilters=pushdown).where(condition)

        assert bodies(filtered("queue = 'a'")) == added["a"]
        assert bodies(filtered("queue in ('a', 'c') and queue <> 'c'")) == added["a"]
        assert bodies(filtered("queue = 'a' and queue = 'b'")) == {}
        assert bodies(filtered("true")) == added["a"] | added["b"] | added["c"]
        partitions = filtered("queue = 'b'").rdd.getNumPartitions()
    assert partitions == (1 if pushdown == "true" else 3)


def test_other_states_give_a_row_for_each_copy(spark: SparkSession, empty: RealCluster, nodes: str) -> None:
    added = add(empty.nodes[0], "a", 10, replicate=3)
    frame = read(spark, nodes, queue="a", states="queued,active", includeMetadata="true")
    rows = frame.collect()
    assert sorted((row.id, row.state) for row in rows) == sorted(
        [(job_id, "queued") for job_id in added] + [(job_id, "active") for job_id in added] * 2
    )
    assert {row.node for row in rows} == {node.id for node in empty.nodes}
    with setting(spark, PUSHDOWN, "true"):
        pushed = read(spark, nodes, queue="a", states="queued,active", includeMetadata="true", pushDownFilters="true")
        assert bodies(pushed.where("state = 'queued'")) == added


def add_dead_letter(node: RealNode) -> None:
    """Add a job with a priority and metadata to the queue `mail`, which fails twice and is then rejected."""
    job_id = node.call("ADDJOB", "mail", "poison", 5000, "PRIORITY", 4, "META", "trace", "RETRY", 60)
    for options in (
        ["REASON", "time-out"],
        ["REASON", "no such user \udcff".encode("utf-8", "surrogateescape"), "DEAD"],
    ):
        assert node.call("GETJOB", "FROM", "mail")[0][1] == job_id
        assert node.call("NACK", job_id, *options) == 1


@pytest.mark.parametrize("consume", ["false", "true"])
def test_dead_letters_are_read_with_reason_origin_and_attempts(
    spark: SparkSession, empty: RealCluster, nodes: str, consume: str
) -> None:
    add_dead_letter(empty.nodes[0])
    add(empty.nodes[1], "mail.dead", 1)
    empty.wait_until(lambda: waiting(empty, "mail.dead") == 2)
    frame = read(spark, nodes, queue="mail.dead", includeAttributes="true", consume=consume)
    plain, dead = sorted(frame.collect(), key=lambda row: row.priority)
    assert (dead.priority, bytes(dead.meta), dead.reason) == (4, b"trace", "no such user \\xff")
    assert (dead.origin_queue, dead.attempts, dead.attempts_before) == ("mail", 0, 2)
    assert dead.dead_since is not None
    assert tuple(plain)[3:] == (0, None, 0, None, None, None, None)


def test_snapshot_has_at_most_maxjobs_rows(spark: SparkSession, empty: RealCluster, nodes: str) -> None:
    for node in empty.nodes:
        add(node, "a", 50)
    assert read(spark, nodes, queue="a", maxJobs="70").count() == 70
    assert read(spark, nodes, queue="a", maxJobs="70", states="queued,active").count() == 70
    assert read(spark, nodes, queue="a", maxJobs="700").count() == 150


def test_empty_queue_gives_no_rows(spark: SparkSession, empty: RealCluster, nodes: str) -> None:
    assert read(spark, nodes, queue="empty").collect() == []
    assert read(spark, nodes, queue="empty", consume="true").collect() == []
    assert waiting(empty, "empty") == 0


def test_large_bodies_and_names_that_are_not_utf8_are_read(spark: SparkSession, empty: RealCluster, nodes: str) -> None:
    body = b"\x00\xff" * 1_000_000
    for number in range(6):
        empty.nodes[0].call("ADDJOB", b"big-\xfe", body + bytes((number,)), 0)
    rows = read(spark, nodes, queuePattern="big-.*", includeMetadata="true").collect()
    assert sorted(bytes(row.body)[-1] for row in rows) == list(range(6))
    assert {row.queue for row in rows} == {"big-\\xfe"}
    assert {len(row.body) for row in rows} == {2_000_001}


def test_unreachable_node_fails_the_read_and_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with RealCluster(tmp_path, 2) as own:
        nodes = ",".join(node.address for node in own.nodes)
        own.nodes[1].kill()
        with pytest.raises(Exception, match=rf"cannot reach {own.nodes[1].address}: the jobs queued there"):
            read(spark, nodes, queue="a", giveUpAfter="1s").collect()


@pytest.mark.parametrize(
    ("lengths", "options", "tasks"),
    [
        ({"a": 10}, {}, [("a",)]),
        ({"a": 10, "b": 5}, {}, [("a",), ("b",)]),
        ({f"q{number}": 1 for number in range(9)}, {}, [tuple(f"q{number}" for number in range(9))]),
        ({"a": 10, "b": 5}, {"max_jobs": 7}, [("a",)]),
    ],
    ids=["one queue", "few queues", "many queues share one scan", "no scan beyond maxJobs"],
)
def test_snapshot_is_split_by_node_and_queue(
    lengths: Mapping[str, int], options: dict[str, int], tasks: list[tuple[str, ...]]
) -> None:
    backlog = Backlog({Member("n", "n:1", 1): lengths}, ())
    given = Options(nodes=("n:1",), queue_pattern=".*", **options)  # type: ignore[arg-type]  # fields by name
    parts = plan_scan(backlog, given, ScanFilter(frozenset({"queued"})))
    assert [scan.queues for part in parts for scan in part.scans] == tasks


# --- consuming --------------------------------------------------------------------------------------------------------


def test_consuming_read_returns_and_acknowledges_the_queued_jobs(
    spark: SparkSession, empty: RealCluster, nodes: str
) -> None:
    added: dict[str, bytes] = {}
    for node in empty.nodes:
        added |= add(node, "a", 300)
    assert bodies(read(spark, nodes, queue="a", consume="true", numPartitions="6")) == added
    empty.wait_until(lambda: all(node.info("jobs")["registered_jobs"] == "0" for node in empty.nodes), "no job is left")


def test_consuming_read_takes_at_most_maxjobs(spark: SparkSession, empty: RealCluster, nodes: str) -> None:
    for node in empty.nodes:
        add(node, "a", 50)
    assert len(bodies(read(spark, nodes, queue="a", consume="true", maxJobs="70", includeMetadata="true"))) == 70
    assert waiting(empty, "a") == 80


def test_task_that_ends_before_its_last_row_acknowledges_nothing(empty: RealCluster) -> None:
    node = empty.nodes[0]
    added = add(node, "a", 3000, retry_s=2, replicate=1)
    part = ConsumeTask(Member(node.id, node.address, 1), ("a",), 3000)
    rows = run_consume(part, Options(nodes=(node.address,), queue="a"), ("id", "body"))
    assert next(rows).num_rows < len(added)
    rows.close()
    empty.wait_until(lambda: waiting(empty, "a") == len(added), "all jobs are requeued")
    assert (
        sum(batch.num_rows for batch in run_consume(part, Options(nodes=(node.address,), queue="a"), ("id",))) == 3000
    )
    empty.wait_until(lambda: all(node.info("jobs")["registered_jobs"] == "0" for node in empty.nodes), "none is left")
