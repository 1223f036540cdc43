"""The driver state of a query, with real brokers and without Spark: limits, tasks and deadlines."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from disqued.client import Client, ConnectionFailed
from pyspark_disque.clock import Clock, RetryDeadline
from pyspark_disque.columns import unpack
from pyspark_disque.jobreader import LeasedJobs
from pyspark_disque.offsets import BEGINNING, JobGroup, Manifest, decode_offset, encode_offset
from pyspark_disque.options import Options
from pyspark_disque.stream import Driver, QueueStream
from support.cluster import RealCluster

START = encode_offset(BEGINNING)
QUEUE = "q"
COLUMNS = ("id", "body")


class ManualClock:
    """A clock that advances only by sleeping."""

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

    def make(clock: Clock | None = None, **given: int) -> Driver:
        options = Options(nodes=tuple(node.address for node in cluster.nodes), queue=QUEUE, **given)  # type: ignore[arg-type]  # fields by name
        made.append(Driver(options, COLUMNS, clock))
        return made[-1]

    yield make
    for one in made:
        one.close()


def ids_of(groups: Iterable[JobGroup]) -> list[str]:
    return [job_id.decode() for group in groups for job_id in group.ids]


def size(offset: dict[str, object]) -> int:
    return len(ids_of(decode_offset(offset).groups))


@pytest.mark.usefixtures("filled")
def test_batch_size_follows_the_read_limit(driver: Callable[..., Driver]) -> None:
    query = driver()
    first = query.next_offset(START, ReadMaxRows(20))
    second = query.next_offset(first, ReadAllAvailable())
    assert (size(first), size(second)) == (20, 70)
    assert query.next_offset(second, ReadAllAvailable()) == second
    assert query.next_offset(second, ReadMinRows(1)) == second


@pytest.mark.usefixtures("filled")
def test_report_has_the_backlog_after_the_last_batch(
    driver: Callable[..., Driver],
) -> None:
    query = driver(ManualClock().clock)
    offset, reports = START, [query.report()]
    for size_of_batch in (40, 30, 20):
        offset = query.next_offset(offset, ReadMaxRows(size_of_batch))
        reports.append(query.report())
    reported = [(report["batch"], report["waiting"]) for report in reports if report is not None]
    assert reported == [(0, 90), (1, 50), (2, 20), (3, 0)]


def test_few_jobs_start_a_batch_only_after_the_trigger_delay(driver: Callable[..., Driver]) -> None:
    manual = ManualClock()
    query = driver(manual.clock, max_trigger_delay_s=10)
    assert [query._are_enough(waiting, 5) for waiting in (0, 4, 5, 4)] == [False, False, True, False]
    manual.sleep(9)
    assert not query._are_enough(4, 5)
    manual.sleep(1)
    assert query._are_enough(4, 5)
    assert not query._are_enough(4, 5), "the delay starts again with the next batch"


@pytest.mark.usefixtures("filled")
def test_tasks_are_deterministic_and_carry_the_rows_of_their_own_driver(driver: Callable[..., Driver]) -> None:
    query, restarted = driver(), driver()
    offset = query.next_offset(START, ReadMaxRows(1000))
    tasks = query.tasks(offset)
    assert len(tasks) == 6, "two for each node"
    assert query.tasks(offset) == tasks
    again = restarted.tasks(offset)
    for task, replayed in zip(tasks, again, strict=True):
        assert task.rows is not None
        assert replayed.rows is None, "a driver that did not lease the jobs has no bodies"
        [batch] = unpack(task.rows)
        assert batch.to_pydict() == {"id": ids_of(replayed.jobs), "body": [b"body"] * 15}


def test_leases_are_renewed_after_a_third_of_them_and_at_once_in_a_replay(
    filled: RealCluster, driver: Callable[..., Driver]
) -> None:
    query, restarted = driver(), driver()
    before = calls_of_working(filled)
    offset = query.next_offset(START, ReadMaxRows(1000))
    assert 60 * 7 / 8 / 3 - 2 <= query._renewer._wait_s() <= 21
    assert calls_of_working(filled) == before
    restarted.tasks(offset)
    filled.wait_until(lambda: calls_of_working(filled) == before + 90, "all leases are renewed")


def calls_of_working(cluster: RealCluster) -> int:
    stats = [node.info("commandstats").get("cmdstat_working", "calls=0,") for node in cluster.nodes]
    return sum(int(line.partition("calls=")[2].partition(",")[0]) for line in stats)


def test_tasks_do_not_carry_rows_beyond_the_limit(filled: RealCluster, driver: Callable[..., Driver]) -> None:
    for _ in range(33):
        filled.nodes[0].call("ADDJOB", QUEUE, b"x" * (1 << 20), 0)
    query = driver(num_partitions=4)
    offset = query.next_offset(START, ReadMaxRows(1000))
    tasks = query.tasks(offset)
    assert [task.rows for task in tasks] == [None] * 4
    assert sum(len(ids_of(task.jobs)) for task in tasks) == 123


def test_job_of_the_previous_batch_is_left_out_and_acknowledged(
    filled: RealCluster, driver: Callable[..., Driver]
) -> None:
    query = driver()
    node = filled.nodes[0]
    job_id = node.call("ADDJOB", "late", "body", 0)
    late = JobGroup(node.id, "late", (job_id,))
    other = job_id[:-4] + b"ffff"
    leased = [LeasedJobs(late._replace(ids=(other, job_id)), [b"other", b"late"], 0.0)]
    assert query._without_finished(leased, Manifest(1, (late,))) == [
        LeasedJobs(late._replace(ids=(other,)), [b"other"], 0.0)
    ]
    filled.wait_until(lambda: node.show(job_id) is None, "the job is acknowledged")


def test_query_continues_when_nodes_return_and_fails_when_they_stay_down(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 1) as own:
        own.nodes[0].kill()
        options = Options(nodes=(own.nodes[0].address,), queue=QUEUE, give_up_after_s=60)
        manual = ManualClock()
        with closing(Driver(options, COLUMNS, manual.clock)) as query:
            assert query.next_offset(START, ReadMaxRows(5)) == START
            assert query.report() is None
            own.nodes[0].restart()
            manual.sleep(30)
            assert query.next_offset(START, ReadMaxRows(5)) == START
            own.nodes[0].kill()
            manual.sleep(31)
            assert query.next_offset(START, ReadMaxRows(5)) == START, "the deadline starts again after a success"
            manual.sleep(60)
            with pytest.raises(ConnectionFailed):
                query.next_offset(START, ReadMaxRows(5))


def test_retry_deadline_retries_until_it_has_passed() -> None:
    manual = ManualClock()
    deadline = RetryDeadline(1, manual.clock)
    for _ in range(4):
        deadline.retry_or_raise(ConnectionFailed("away"))
    assert manual.now_s == 101
    with pytest.raises(ConnectionFailed, match="away"):
        deadline.retry_or_raise(ConnectionFailed("away"))


def test_pickled_reader_works_without_connections() -> None:
    reader = QueueStream(Options(nodes=("n:1",), queue=QUEUE), ("id", "body"))
    again = pickle.loads(pickle.dumps(reader))
    assert again.getDefaultReadLimit() == ReadMaxRows(10_000)
    assert again.partitions(START, START) == []
