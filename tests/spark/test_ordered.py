"""An ordered queue as the source and the sink of Spark, with a real Spark and real nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import count
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pyspark_disque.clock import Clock
from pyspark_disque.jobreader import JobReader, LeasedJobs
from pyspark_disque.options import Options
from support.cluster import RealCluster

TIMEOUT_S = 60
NUMBER = count()


@pytest.fixture(scope="module")
def founded(cluster: RealCluster) -> RealCluster:
    """The nodes with a catalog."""
    node = cluster.nodes[0]
    assert node.call("CLUSTER", "ORDERED", "INIT", *[one.id for one in cluster.nodes]) == b"OK"
    return cluster


@pytest.fixture
def queue(founded: RealCluster) -> str:
    """A new ordered queue."""
    name = f"ordered-{next(NUMBER)}"
    make(founded, name)
    return name


def make(cluster: RealCluster, name: str, *options: str | int) -> None:
    assert cluster.nodes[0].call("QNEW", name, "ORDERED", *options) == b"OK"
    cluster.wait_until(lambda: all(one.call("QTYPE", name) == b"ordered" for one in cluster.nodes), "all know it")


def add(cluster: RealCluster, queue: str, jobs: int) -> list[bytes]:
    """Add jobs in their order, at all nodes in turn."""
    bodies = [b"%d" % number for number in range(jobs)]
    for number, body in enumerate(bodies):
        cluster.nodes[number % len(cluster.nodes)].call("ADDJOB", queue, body, 5000, "RETRY", 60)
    return bodies


def read(spark: SparkSession, nodes: str, **options: str) -> DataFrame:
    return spark.read.format("disque").options(nodes=nodes, **options).load()


def bodies_of(leased: list[LeasedJobs]) -> list[bytes]:
    return [bytes(body) for jobs in leased for body in jobs.bodies]


@pytest.mark.parametrize("mode", ["atLeastOnce", "deduplicated"])
def test_rows_are_added_to_an_ordered_queue_and_read_in_their_order(
    spark: SparkSession, founded: RealCluster, nodes: str, queue: str, mode: str
) -> None:
    frame = spark.range(300, numPartitions=1).selectExpr("cast(id as string) as body", f"'{queue}' as queue")
    frame.write.format("disque").mode("append").options(nodes=nodes, mode=mode).save()
    assert founded.nodes[1].call("QLEN", queue) == 300
    rows = read(spark, nodes, queue=queue, consume="true", numPartitions="1").collect()
    assert [int(bytes(row.body)) for row in rows] == list(range(300))
    assert founded.nodes[1].call("QLEN", queue) == 0


@pytest.mark.parametrize(("single", "attributes"), [(False, "false"), (True, "true")])
def test_stream_returns_the_jobs_once_in_batches_and_acknowledges_them(
    spark: SparkSession, founded: RealCluster, nodes: str, checkpoint: str, *, single: bool, attributes: str
) -> None:
    name = f"stream-{next(NUMBER)}"
    make(founded, name, *(["SINGLE"] if single else []))
    added = add(founded, name, 25)
    batches: list[list[bytes]] = []

    def collect(frame: DataFrame, _: int) -> None:
        batches.append([bytes(row.body) for row in frame.collect()])

    options = {"nodes": nodes, "queue": name, "maxJobsPerTrigger": "10", "numPartitions": "1"}
    frame = spark.readStream.format("disque").options(includeAttributes=attributes, **options).load()
    writer = frame.writeStream.foreachBatch(collect).option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(TIMEOUT_S), "the query did not end"
    assert batches == [added[:10], added[10:20], added[20:]]
    stat = founded.nodes[2].call("QSTAT", name)
    assert (stat[stat.index(b"len") + 1], stat[stat.index(b"leased") + 1]) == (0, 0)


def test_snapshot_of_an_ordered_queue_is_refused(spark: SparkSession, nodes: str, queue: str) -> None:
    with pytest.raises(PySparkException, match=r"is an ordered queue.*consume"):
        read(spark, nodes, queue=queue).collect()


def test_rows_that_an_ordered_queue_cannot_have_fail_the_write_with_the_reason(
    spark: SparkSession, nodes: str, queue: str
) -> None:
    frame = spark.createDataFrame([("job", 3)], "body string, priority int")
    with pytest.raises(PySparkException, match="PRIORITY cannot be used with an ordered queue"):
        frame.write.format("disque").mode("append").options(nodes=nodes, queue=queue).save()


@pytest.fixture
def reader(founded: RealCluster) -> Iterator[Any]:
    """Makes the reader of a queue."""
    readers: list[JobReader] = []

    def of(queue: str) -> JobReader:
        nodes = tuple(node.address for node in founded.nodes)
        readers.append(JobReader(Options(nodes=nodes, queue=queue, give_up_after_s=20), Clock()))
        return readers[-1]

    yield of
    for one in readers:
        one.close()


def test_ordered_queue_is_counted_once_and_read_at_one_node_in_order(
    founded: RealCluster, queue: str, reader: Any
) -> None:
    added = add(founded, queue, 30)
    with closing(reader(queue)) as jobs:
        backlog = jobs.backlog()
        assert backlog.waiting == 30
        leased = jobs.lease(backlog, 20)
        assert bodies_of(leased) == added[:20]
        assert bodies_of(jobs.lease(jobs.backlog(), 20)) == added[20:]
        assert jobs.probe(jobs.backlog()) == []
