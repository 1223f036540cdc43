"""Streams whose driver, executors and nodes are killed at each step lose no job, and replays have the same rows.

All tests are slow because they kill and restart whole processes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from disqued.client import Client
from support.cluster import RealCluster, RealNode
from support.sparkdriver import DriverProcess, Plan, Step, running

QUEUE = "q"
LONG_S = 240
HANGS = ("before the tasks", "after the tasks", "after the commit")


def add(node: RealNode, count: int, retry_s: int = 60, **how: int) -> dict[str, str]:
    bodies = [f"{node.port}-{number}" for number in range(count)]
    with Client([node.address], discover=False) as client:
        results = client.add_many(QUEUE, bodies, retry_s=retry_s, **how)  # type: ignore[arg-type]  # options by name
    return dict(zip((str(result) for result in results), bodies, strict=True))


@pytest.fixture
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    with RealCluster(tmp_path_factory.mktemp("own"), 3) as cluster:
        yield cluster


def plan_for(cluster: RealCluster, directory: Path, hang: Step = "nowhere", **more: str) -> Plan:
    nodes = ",".join(node.address for node in cluster.nodes)
    return Plan({"nodes": nodes, "queue": QUEUE, "maxJobsPerTrigger": "40", **more}, str(directory), hang)


def wait_for(cluster: RealCluster, driver: DriverProcess, plan: Plan, hang: Step) -> None:
    def is_there() -> bool:
        assert driver.is_running, driver.log.read_text()
        return plan.is_logged("commits", 0) if hang == "after the commit" else plan.marker.exists()

    cluster.wait_until(is_there, f"the driver hangs {hang}", LONG_S)


def jobs_left(cluster: RealCluster) -> int:
    return sum(len(node.call("JSCAN", 0, "COUNT", 100_000)[1]) for node in cluster.running)


@pytest.mark.slow
@pytest.mark.timeout(LONG_S * 2)
@pytest.mark.parametrize("hang", ["in a task", *(pytest.param(hang, marks=pytest.mark.long) for hang in HANGS)])
def test_killed_driver_loses_nothing(own: RealCluster, tmp_path: Path, hang: Step) -> None:
    added: dict[str, str] = {}
    for node in own.nodes:
        added |= add(node, 40)
    broken = plan_for(own, tmp_path, hang)
    with running(broken) as driver:
        wait_for(own, driver, broken, hang)
    assert plan_for(own, tmp_path).is_logged("offsets", 0)
    whole = plan_for(own, tmp_path)
    with running(whole) as driver:
        assert driver.process.wait(LONG_S) == 0, driver.log.read_text()
    rows = whole.written()
    assert {row["id"]: row["body"] for row in rows} == added
    twice = 40 if hang == "after the tasks" else 0
    assert len(rows) == len(added) + twice, "only a batch that was written but not committed is written again"
    attempts = [path.read_text().splitlines() for path in sorted(whole.rows.glob("000000-*"))]
    assert all(sorted(lines) == sorted(attempts[0]) for lines in attempts), "attempts have different rows"
    own.wait_until(lambda: jobs_left(own) == 0, "all jobs are acknowledged")


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(LONG_S * 2)
def test_jobs_leased_by_a_killed_driver_are_requeued(own: RealCluster, tmp_path: Path) -> None:
    added = add(own.nodes[0], 30, retry_s=3)
    plan = plan_for(own, tmp_path, "in a task")
    with running(plan) as driver:
        wait_for(own, driver, plan, "in a task")
        assert sum(node.call("QLEN", QUEUE) for node in own.nodes) == 0
    own.wait_until(
        lambda: sum(node.call("QLEN", QUEUE) for node in own.nodes) == len(added), "all jobs are queued again"
    )


@pytest.mark.slow
@pytest.mark.timeout(LONG_S * 2)
def test_tasks_of_a_killed_executor_are_run_again(own: RealCluster, tmp_path: Path) -> None:
    added: dict[str, str] = {}
    for node in own.nodes:
        added |= add(node, 40)
    plan = Plan(
        plan_for(own, tmp_path).options,
        str(tmp_path),
        "an executor dies",
        master="local-cluster[2,1,1024]",
        settings={"spark_executor_memory": "1g", "spark_python_authenticate_socketTimeout": "120s"},
    )
    with running(plan) as driver:
        assert driver.process.wait(LONG_S) == 0, driver.log.read_text()
    assert plan.marker.exists(), "no executor was killed"
    rows = plan.written()
    assert {row["id"]: row["body"] for row in rows} == added
    assert len(rows) == len(added)
    own.wait_until(lambda: jobs_left(own) == 0, "all jobs are acknowledged")


# --- nodes ------------------------------------------------------------------------------------------------------------


def start(spark: SparkSession, cluster: RealCluster, directory: Path, **options: str) -> StreamingQuery:
    nodes = ",".join(node.address for node in cluster.nodes)
    frame = spark.readStream.format("disque").options(nodes=nodes, queue=QUEUE, **options).load()
    writer = frame.writeStream.format("parquet").option("path", str(directory / "rows"))
    return writer.option("checkpointLocation", str(directory / "checkpoint")).trigger(availableNow=True).start()


def ids_of(spark: SparkSession, directory: Path) -> list[str]:
    return [row.id for row in spark.read.parquet(str(directory / "rows")).select("id").collect()]


@pytest.mark.slow
@pytest.mark.timeout(LONG_S)
def test_killed_node_loses_no_job_that_has_another_copy(spark: SparkSession, own: RealCluster, tmp_path: Path) -> None:
    added: dict[str, str] = {}
    for node in own.nodes:
        added |= add(node, 200, retry_s=6, replicate=2)
    query = start(spark, own, tmp_path, maxJobsPerTrigger="100", giveUpAfter="20s")
    own.wait_until((tmp_path / "checkpoint" / "offsets" / "1").exists, "the second batch has started", LONG_S)
    own.nodes[2].kill()
    assert query.awaitTermination(LONG_S)
    assert set(ids_of(spark, tmp_path)) == set(added)


@pytest.mark.slow
@pytest.mark.timeout(LONG_S)
def test_twenty_thousand_jobs_are_drained_once_while_a_node_leaves(
    spark: SparkSession, own: RealCluster, tmp_path: Path
) -> None:
    added: dict[str, str] = {}
    for node, count in zip(own.nodes, (2000, 6000, 12_000), strict=True):
        added |= add(node, count, retry_s=120)
    query = start(spark, own, tmp_path, maxJobsPerTrigger="3000")
    own.wait_until((tmp_path / "checkpoint" / "offsets" / "0").exists, "the first batch has started", LONG_S)
    own.nodes[2].call("CLUSTER", "LEAVING", "yes")
    assert query.awaitTermination(LONG_S)
    rows = ids_of(spark, tmp_path)
    assert set(rows) == set(added)
    assert len(rows) == len(added), "duplicate rows"
    progress = query.lastProgress
    assert progress is not None
    assert json.loads(progress["sources"][0]["latestOffset"])["waiting"] == 0
    own.wait_until(lambda: jobs_left(own) == 0, "all jobs are acknowledged")
