"""Jobs of Spark that wait for each other, have IDs that Spark chose, and results that come back as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from disqued.client import Client
from disqued.core.jobs.jobid import can_exist, suffix_for
from pyspark_disque import BadOption, job_id, with_results
from pyspark_disque.brokers import Brokers
from pyspark_disque.clock import Clock
from pyspark_disque.options import Options
from pyspark_disque.results import FateAsking
from pyspark_disque.senders import AnyNode
from support.cluster import RealCluster
from support.jobs import bodies, jobs

pytestmark = pytest.mark.slow

NUMBER = count()
TIMEOUT_S = 60


@pytest.fixture
def queue() -> str:
    return f"tasks-{next(NUMBER)}"


@pytest.fixture
def client(cluster: RealCluster) -> Iterator[Client]:
    with Client([node.address for node in cluster.nodes]) as found:
        yield found


@pytest.fixture
def write(nodes: str) -> Callable[..., None]:
    def append(frame: DataFrame, **options: str) -> None:
        given = {"nodes": nodes, "replicate": "1", **options}
        frame.write.format("disque").mode("append").options(**given).save()

    return append


def ends(frame: DataFrame) -> dict[str, tuple[Any, ...]]:
    """Return outcome, claim and result of each row by its body."""
    return {row.body: (row.outcome, row.claim, row.result and bytes(row.result)) for row in frame.collect()}


# --- dependencies -----------------------------------------------------------------------------------------------------


def test_jobs_wait_until_spark_has_committed_the_batch_with_their_parents(
    spark: SparkSession, cluster: RealCluster, client: Client, write: Callable[..., None], nodes: str, queue: str,
    checkpoint: str,
) -> None:  # fmt: skip
    extracts = spark.range(20).select(
        job_id(F.lit(queue), "id").alias("job_id"),
        F.col("id").cast("string").alias("body"),
        (F.col("id") % 4).alias("part"),
    )
    loads = extracts.groupBy(F.col("part").cast("string").alias("body")).agg(F.collect_list("job_id").alias("after"))
    write(extracts.drop("part"), queue=f"{queue}-extract", retain="10m")
    write(loads, queue=f"{queue}-load", otherwise="run")
    queued: list[int] = []

    def process(frame: DataFrame, _: int) -> None:
        assert frame.count() == 20
        queued.append(sum(int(node.call("QLEN", f"{queue}-load")) for node in cluster.nodes))

    rows = spark.readStream.format("disque").options(nodes=nodes, queue=f"{queue}-extract").load()
    query = rows.writeStream.foreachBatch(process).option("checkpointLocation", checkpoint)
    assert query.trigger(availableNow=True).start().awaitTermination(TIMEOUT_S)

    assert queued == [0]
    found = [client.get(f"{queue}-load", timeout_ms=TIMEOUT_S * 1000) for _ in range(4)]
    assert sorted(job.body for [job] in found) == [b"0", b"1", b"2", b"3"]
    assert {end[0] for end in ends(with_results(extracts, "job_id", nodes=nodes)).values()} == {"done"}


# --- IDs --------------------------------------------------------------------------------------------------------------


def test_ids_fit_the_jobs_and_depend_on_all_values(spark: SparkSession) -> None:
    values = [("ab", "c"), ("a", "bc"), ("abc", ""), (None, "abc"), ("-", "abc"), ("", "-3:abc"), ("ключ", "c")]
    frame = spark.createDataFrame(values, "a string, b string")
    once = {"ttl": "90s", "at_most_once": True}
    day, minute, most = job_id("a", "b"), job_id(F.col("a"), "b", **once), job_id("b", ttl="7000d")  # type: ignore[arg-type]  # by name
    found = frame.select(day.alias("day"), minute.alias("minute"), most.alias("most")).collect()
    ids = [[str(row[index]).encode() for row in found] for index in range(3)]
    assert all(can_exist(word) for column in ids for word in column)
    assert len(set(ids[0])) == len(values)
    for column, ttl_s, at_least_once in zip(ids, (86_400, 90, 7000 * 86_400), (True, False, True), strict=True):
        assert {word[35:] for word in column} == {suffix_for(ttl_s, at_least_once)}
    same = spark.createDataFrame([(7, "ab")], "x int, y string").select(job_id("y", F.lit("c")), job_id("x"))
    text = spark.createDataFrame([("7",)], "z string").select(job_id("z"))
    assert [same.collect()[0][0].encode(), text.collect()[0][0]] == [ids[0][0], same.collect()[0][1]]


def test_rows_with_ids_are_one_job_each_however_often_they_are_written(
    spark: SparkSession, cluster: RealCluster, write: Callable[..., None], queue: str
) -> None:
    frame = spark.range(0, 600, 1, 2).select(
        F.col("id").cast("string").alias("body"), job_id(F.lit(queue), "id").alias("job_id")
    )
    last = F.when(F.col("body") == "599", 0).otherwise(86_400)
    with pytest.raises(PySparkException, match="row 299 was rejected; 299 rows of the partition were added: ERR TTL"):
        write(frame.withColumn("ttl", last), queue=queue)
    for _ in range(2):
        write(frame, queue=queue)
    assert bodies(cluster, queue) == sorted(b"%d" % number for number in range(600))
    assert {found.decode() for found in jobs(cluster, queue)} == {row.job_id for row in frame.collect()}


# --- results ----------------------------------------------------------------------------------------------------------


def test_results_are_columns_and_a_task_waits_for_them(
    spark: SparkSession, client: Client, cluster: RealCluster, nodes: str, queue: str
) -> None:
    done, later, never = (client.add(queue, body, retain_s=600) for body in ("done", "later", "never"))
    claims = {job.id: job.claim for job in client.get(queue, count=3, timeout_ms=1000, with_claim=True)}
    client.ack(done, claim=claims[done], result=b"\x00\xff")
    rows = [("done", done), ("later", later), ("unknown", client.new_id()), ("none", None), ("again", done)]
    frame = spark.createDataFrame(rows, "body string, id string").coalesce(1)
    ended = ("done", claims[done], b"\x00\xff")
    expected = {"done": ended, "again": ended, "unknown": (None,) * 3, "none": (None,) * 3}

    found = with_results(frame, "id", nodes=nodes)
    assert found.columns == ["body", "id", "outcome", "ended", "claim", "result"]
    assert ends(found) == {**expected, "later": ("waiting", None, None)}
    with ThreadPoolExecutor(1) as thread:
        waits = thread.submit(lambda: ends(with_results(frame, "id", nodes=nodes, wait=f"{TIMEOUT_S}s")))
        cluster.wait_until(
            lambda: any(int(node.info()["blocked_clients"]) > 0 for node in cluster.nodes), "a task waits for the job"
        )
        client.ack(later, claim=claims[later], result="finally")
        assert waits.result(TIMEOUT_S) == {**expected, "later": ("done", claims[later], b"finally")}
    unended = spark.createDataFrame([("never", never)], "body string, id string")
    [row] = with_results(unended, "id", nodes=nodes, wait="1s").collect()
    assert (row.outcome, row.ended, row.result) == ("waiting", None, None)


def test_wrong_columns_and_ids_are_rejected(spark: SparkSession, nodes: str) -> None:
    frame = spark.createDataFrame([("D-1", b"x")], "id string, body binary")
    for column, options, message in (
        ("job_id", {}, "no column job_id with job IDs; the columns are id, body"),
        ("body", {}, "the column body must be string, not binary"),
        ("id", {"ttl": "1h"}, "the option ttl does not apply to with_results"),
        ("id", {"wait": "soon"}, "the option wait must be a time"),
    ):
        with pytest.raises(BadOption, match=message):
            with_results(frame, column, nodes=nodes, **options)
    with pytest.raises(BadOption, match="the DataFrame has a column result already; rename or drop it"):
        with_results(frame.withColumnRenamed("body", "Result"), "id", nodes=nodes)
    with pytest.raises(PySparkException, match="'D-1' is not a job ID"):
        with_results(frame, "id", nodes=nodes).collect()
    with pytest.raises(BadOption, match="job_id needs at least one column"):
        job_id()
    with pytest.raises(BadOption, match=r"the ttl of job_id must be a time .* not 'soon'"):
        job_id("id", ttl="soon")


def test_another_node_is_asked_when_one_fails(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 2) as cluster:
        options = Options(nodes=tuple(node.address for node in cluster.nodes))
        with Client(list(options.nodes)) as client, Brokers(options) as brokers:
            ended = client.add("q", "body", retain_s=600, replicate=2)
            client.ack(ended, result="42", copies=2)
            clock = Clock()
            route = AnyNode(brokers, 0, clock.now_s)
            asking = FateAsking(brokers, route, options, clock)
            before = asking.fates([ended])
            used = route.address(0)
            next(node for node in cluster.nodes if node.address == used).kill()
            assert asking.fates([ended, None]) == [*before, None]
            assert before[0] is not None
            assert before[0].result == b"42"
