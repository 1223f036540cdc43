"""The state of a running query, with real brokers and without Spark: limits, what travels with tasks, giving up."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from disqued.client import Client, ConnectionFailed
from pyspark_disque.clock import Clock, Patience
from pyspark_disque.intake import Taken
from pyspark_disque.ledger import BEGINNING, Lease, Manifest, pack, unpack
from pyspark_disque.options import Options
from pyspark_disque.stream import Driver, QueueStream
from support.cluster import RealCluster

START = pack(BEGINNING)
QUEUE = "q"


class Hand:
    """A clock that only goes on when somebody sleeps."""

    def __init__(self) -> None:
        self.now_s = 100.0

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.now_s, self.sleep)

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def filled(cluster: RealCluster) -> RealCluster:
    """Thirty jobs at each of three nodes, and no others."""
    for node in cluster.nodes:
        node.call("DEBUG", "FLUSHALL")
        with Client([node.address], discover=False) as client:
            client.add_many(QUEUE, ["body"] * 30, retry_s=60)
    return cluster


@pytest.fixture
def driver(cluster: RealCluster) -> Iterator[Callable[..., Driver]]:
    made: list[Driver] = []

    def make(clock: Clock | None = None, *, keeps_bodies: bool = True, **given: int) -> Driver:
        options = Options(nodes=tuple(node.address for node in cluster.nodes), queue=QUEUE, **given)  # type: ignore[arg-type]  # fields by name
        made.append(Driver(options, keeps_bodies=keeps_bodies, clock=clock))
        return made[-1]

    yield make
    for one in made:
        one.close()


def size(offset: dict[str, object]) -> int:
    return len(unpack(offset).jobs)


@pytest.mark.usefixtures("filled")
def test_a_batch_is_as_large_as_spark_says(driver: Callable[..., Driver]) -> None:
    query = driver()
    first = query.next_offset(START, ReadMaxRows(20))
    second = query.next_offset(first, ReadAllAvailable())
    assert (size(first), size(second)) == (20, 70)
    assert query.next_offset(second, ReadAllAvailable()) == second
    assert query.next_offset(second, ReadMinRows(1)) == second


@pytest.mark.usefixtures("filled")
def test_what_waits_is_reported_as_it_is_after_the_last_batch_however_quickly_that_came(
    driver: Callable[..., Driver],
) -> None:
    query = driver(Hand().clock)
    offset, reports = START, [query.backlog()]
    for size_of_batch in (40, 30, 20):
        offset = query.next_offset(offset, ReadMaxRows(size_of_batch))
        reports.append(query.backlog())
    told = [(report["batch"], report["waiting"]) for report in reports if report is not None]
    assert told == [(0, 90), (1, 50), (2, 20), (3, 0)]


def test_few_jobs_wait_until_there_are_more_or_the_delay_is_over(driver: Callable[..., Driver]) -> None:
    hand = Hand()
    query = driver(hand.clock, max_trigger_delay_s=10)
    assert [query._are_enough(waiting, 5) for waiting in (0, 4, 5, 4)] == [False, False, True, False]
    hand.sleep(9)
    assert not query._are_enough(4, 5)
    hand.sleep(1)
    assert query._are_enough(4, 5)
    assert not query._are_enough(4, 5), "the delay begins anew with the next batch"


@pytest.mark.usefixtures("filled")
def test_tasks_are_the_same_whoever_plans_them_and_have_the_bodies_at_hand(driver: Callable[..., Driver]) -> None:
    query, restarted = driver(), driver()
    offset = query.next_offset(START, ReadMaxRows(1000))
    tasks = query.tasks(offset)
    assert len(tasks) == 6, "two for each node"
    assert query.tasks(offset) == tasks
    assert all(task.bodies == (b"body",) * 15 for task in tasks)
    again = restarted.tasks(offset)
    assert [task.leases for task in again] == [task.leases for task in tasks]
    assert [task.bodies for task in again] == [None] * 6, "who did not lease the jobs has tasks fetch them"


def test_bodies_beyond_what_may_travel_are_left_to_the_tasks(
    filled: RealCluster, driver: Callable[..., Driver]
) -> None:
    for _ in range(33):
        filled.nodes[0].call("ADDJOB", QUEUE, b"x" * (1 << 20), 0)
    query = driver(num_partitions=4)
    offset = query.next_offset(START, ReadMaxRows(1000))
    tasks = query.tasks(offset)
    assert [task.bodies for task in tasks] == [None] * 4
    assert sum(len(task.leases) for task in tasks) == 123


def test_a_job_that_comes_again_after_its_batch_is_left_out_and_acknowledged(
    filled: RealCluster, driver: Callable[..., Driver]
) -> None:
    query = driver()
    node = filled.nodes[0]
    job_id = node.call("ADDJOB", "late", "body", 0).decode()
    lease = Lease(job_id, "late", node.id)
    other = Taken(lease._replace(id=f"{job_id[:-5]}-ffff"), b"")
    assert query._without_finished([Taken(lease, b""), other], Manifest(1, (lease,))) == [other]
    filled.wait_until(lambda: node.show(job_id) is None, "it is acknowledged")


def test_a_query_goes_on_when_the_nodes_are_back_and_fails_when_they_stay_away(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 1) as own:
        own.nodes[0].kill()
        options = Options(nodes=(own.nodes[0].address,), queue=QUEUE, give_up_after_s=60)
        hand = Hand()
        with closing(Driver(options, keeps_bodies=True, clock=hand.clock)) as query:
            assert query.next_offset(START, ReadMaxRows(5)) == START
            assert query.backlog() is None
            own.nodes[0].restart()
            hand.sleep(30)
            assert query.next_offset(START, ReadMaxRows(5)) == START
            own.nodes[0].kill()
            hand.sleep(31)
            assert query.next_offset(START, ReadMaxRows(5)) == START, "a failure after a success begins anew"
            hand.sleep(60)
            with pytest.raises(ConnectionFailed):
                query.next_offset(START, ReadMaxRows(5))


def test_patience_bears_until_it_is_over() -> None:
    hand = Hand()
    patience = Patience(1, hand.clock)
    for _ in range(4):
        patience.bear(ConnectionFailed("away"))
    assert hand.now_s == 101
    with pytest.raises(ConnectionFailed, match="away"):
        patience.bear(ConnectionFailed("away"))


def test_a_reader_is_pickled_as_values_only() -> None:
    reader = QueueStream(Options(nodes=("n:1",), queue=QUEUE), ("id", "body"))
    again = pickle.loads(pickle.dumps(reader))
    assert again.getDefaultReadLimit() == ReadMaxRows(10_000)
    assert again.partitions(START, START) == []
