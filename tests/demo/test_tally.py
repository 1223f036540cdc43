"""Adding up what workers report."""

from __future__ import annotations

import pytest

from disqued.client import JobId
from disqued.demo.producer import Added
from disqued.demo.source import Count
from disqued.demo.summary import disagreement
from disqued.demo.tally import NodeTally, Tally, WorkerTally, percentile
from disqued.demo.worker import Acknowledged, Counted, Taken

A, B = JobId("a"), JobId("b")


@pytest.fixture
def tally() -> Tally:
    tally = Tally(2, workers=[WorkerTally("first"), WorkerTally("second")])
    tally.added(Added((A, B), 10.0, ()))
    return tally


def test_a_job_goes_through(tally: Tally) -> None:
    worker, _ = tally.workers
    tally.report(worker, Taken((A, B), 11.0))
    assert worker.held == {A, B}
    assert tally.is_halfway
    tally.report(worker, Counted(A, Count(5)))
    tally.report(worker, Acknowledged(A, 13.0))
    assert (worker.held, worker.acknowledged, worker.definitions) == ({B}, 1, 5)
    assert list(tally.jobs.completed) == [A]
    tally.report(worker, Counted(B, Count(0, 1)))
    tally.report(worker, Acknowledged(B, 12.0))
    assert tally.is_complete
    assert tally.total == Count(5, 1)
    assert (tally.jobs.duplicates, tally.elapsed_s) == (0, 3.0)
    assert (tally.latencies_s, tally.hold_times_s) == ([3.0, 2.0], [2.0, 1.0])


def test_a_job_done_twice_counts_once(tally: Tally) -> None:
    dead, alive = tally.workers
    tally.report(dead, Taken((A,), 11.0))
    tally.report(dead, Counted(A, Count(5)))
    dead.killed = True
    tally.report(alive, Taken((A, B), 15.0))
    for job_id in (A, B):
        tally.report(alive, Counted(job_id, Count(5)))
        tally.report(alive, Acknowledged(job_id, 16.0))
        tally.report(alive, Acknowledged(job_id, 99.0))
    assert tally.total == Count(10)
    assert (tally.jobs.duplicates, tally.elapsed_s) == (1, 6.0)
    assert disagreement(tally, Count(10)) is None


def test_a_wrong_total_is_told(tally: Tally) -> None:
    tally.report(tally.workers[0], Taken((A,), 11.0))
    tally.report(tally.workers[0], Counted(A, Count(5)))
    problem = disagreement(tally, Count(6))
    assert problem == (
        "the broker's workers counted 5 definitions and 0 unparsable files, "
        "the direct count is 6 definitions and 0 unparsable files"
    )


def test_a_killed_worker_whose_jobs_did_not_come_back_is_told(tally: Tally) -> None:
    tally.report(tally.workers[0], Taken((A, B), 11.0))
    tally.workers[0].killed = True
    for job_id in (A, B):
        tally.report(tally.workers[1], Acknowledged(job_id, 15.0))
    assert "no job was delivered again" in str(disagreement(tally, Count()))


def test_copies_are_counted_for_each_node() -> None:
    one, other = NodeTally("node 1", "", ""), NodeTally("node 2", "", "")
    tally = Tally(3, [one, other], {"1": one, "2": other})
    tally.added(Added((A, B), 10.0, (("1", "2"), ("1", "of nobody"))))
    assert (one.copies, other.copies) == (2, 1)


def test_a_job_may_be_done_before_it_is_known_that_it_was_added() -> None:
    worker = WorkerTally("quick")
    tally = Tally(1, workers=[worker])
    tally.report(worker, Taken((A,), 11.0))
    tally.report(worker, Counted(A, Count(5)))
    tally.report(worker, Acknowledged(A, 12.0))
    assert (tally.is_complete, len(tally.jobs.unexpected)) == (False, 1)
    tally.added(Added((A,), 10.0, ()))
    assert (tally.is_complete, len(tally.jobs.unexpected), len(tally.jobs.uncompleted), tally.latencies_s) == (
        True,
        0,
        0,
        [2.0],
    )


def test_lost_and_invented_jobs_are_told(tally: Tally) -> None:
    worker = tally.workers[0]
    for job_id in (A, JobId("c")):
        tally.report(worker, Taken((job_id,), 11.0))
        tally.report(worker, Counted(job_id, Count(1)))
        tally.report(worker, Acknowledged(job_id, 12.0))
    assert not tally.is_complete
    assert disagreement(tally, Count(2)) == "1 jobs were lost, 1 were delivered that nobody added"


def test_a_node_that_did_not_come_back_is_told() -> None:
    tally = Tally(0, [NodeTally("node 2", "", "", killed_s=1.0)])
    assert disagreement(tally, Count()) == "node 2 was killed and did not come back into the cluster"


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [([], 50, 0.0), ([7.0], 99, 7.0), ([1.0, 2.0, 3.0, 4.0], 50, 2.0), ([float(n) for n in range(1, 201)], 99, 198.0)],
)
def test_percentiles(values: list[float], percent: float, expected: float) -> None:
    assert percentile(values, percent) == expected
