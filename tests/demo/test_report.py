"""The report of producers and workers."""

from __future__ import annotations

import pytest

from disqued.client import JobId
from disqued.demo.producer import Added
from disqued.demo.report import NodeReport, Report, WorkerReport, percentile
from disqued.demo.source import Count
from disqued.demo.summary import disagreement
from disqued.demo.worker import Acknowledged, Counted, Fetched

A, B = JobId("a"), JobId("b")


@pytest.fixture
def report() -> Report:
    report = Report(2, workers=[WorkerReport("first"), WorkerReport("second")])
    report.added(Added((A, B), 10.0, ()))
    return report


def test_job_is_counted_from_fetch_to_acknowledgement(report: Report) -> None:
    worker, _ = report.workers
    report.record(worker, Fetched((A, B), 11.0))
    assert worker.held == {A, B}
    assert report.is_halfway
    report.record(worker, Counted(A, Count(5)))
    report.record(worker, Acknowledged(A, 13.0))
    assert (worker.held, worker.acknowledged, worker.definitions) == ({B}, 1, 5)
    assert list(report.jobs.completed) == [A]
    report.record(worker, Counted(B, Count(0, 1)))
    report.record(worker, Acknowledged(B, 12.0))
    assert report.is_complete
    assert report.total == Count(5, 1)
    assert (report.jobs.duplicates, report.elapsed_s) == (0, 3.0)
    assert (report.latencies_s, report.hold_times_s) == ([3.0, 2.0], [2.0, 1.0])


def test_job_done_twice_counts_once(report: Report) -> None:
    dead, alive = report.workers
    report.record(dead, Fetched((A,), 11.0))
    report.record(dead, Counted(A, Count(5)))
    dead.killed = True
    report.record(alive, Fetched((A, B), 15.0))
    for job_id in (A, B):
        report.record(alive, Counted(job_id, Count(5)))
        report.record(alive, Acknowledged(job_id, 16.0))
        report.record(alive, Acknowledged(job_id, 99.0))
    assert report.total == Count(10)
    assert (report.jobs.duplicates, report.elapsed_s) == (1, 6.0)
    assert disagreement(report, Count(10)) is None


def test_wrong_total_is_reported(report: Report) -> None:
    report.record(report.workers[0], Fetched((A,), 11.0))
    report.record(report.workers[0], Counted(A, Count(5)))
    problem = disagreement(report, Count(6))
    assert problem == (
        "the workers counted 5 definitions and 0 unparsable files, "
        "the count without the broker is 6 definitions and 0 unparsable files"
    )


def test_missing_redelivery_after_a_killed_worker_is_reported(report: Report) -> None:
    report.record(report.workers[0], Fetched((A, B), 11.0))
    report.workers[0].killed = True
    for job_id in (A, B):
        report.record(report.workers[1], Acknowledged(job_id, 15.0))
    assert "no job was delivered again" in str(disagreement(report, Count()))


def test_copies_are_counted_per_node() -> None:
    one, other = NodeReport("node 1", "", ""), NodeReport("node 2", "", "")
    report = Report(3, [one, other], {"1": one, "2": other})
    report.added(Added((A, B), 10.0, (("1", "2"), ("1", "unknown"))))
    assert (one.copies, other.copies) == (2, 1)


def test_job_may_be_done_before_the_message_that_it_was_added() -> None:
    worker = WorkerReport("quick")
    report = Report(1, workers=[worker])
    report.record(worker, Fetched((A,), 11.0))
    report.record(worker, Counted(A, Count(5)))
    report.record(worker, Acknowledged(A, 12.0))
    assert (report.is_complete, len(report.jobs.unexpected)) == (False, 1)
    report.added(Added((A,), 10.0, ()))
    assert (report.is_complete, len(report.jobs.unexpected), len(report.jobs.uncompleted), report.latencies_s) == (
        True,
        0,
        0,
        [2.0],
    )


def test_lost_and_unexpected_jobs_are_reported(report: Report) -> None:
    worker = report.workers[0]
    for job_id in (A, JobId("c")):
        report.record(worker, Fetched((job_id,), 11.0))
        report.record(worker, Counted(job_id, Count(1)))
        report.record(worker, Acknowledged(job_id, 12.0))
    assert not report.is_complete
    assert disagreement(report, Count(2)) == "1 jobs were lost, 1 jobs were delivered that no producer added"


def test_node_that_did_not_rejoin_is_reported() -> None:
    report = Report(0, [NodeReport("node 2", "", "", killed_s=1.0)])
    assert disagreement(report, Count()) == "node 2 was killed and did not rejoin the cluster"


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [([], 50, 0.0), ([7.0], 99, 7.0), ([1.0, 2.0, 3.0, 4.0], 50, 2.0), ([float(n) for n in range(1, 201)], 99, 198.0)],
)
def test_percentiles(values: list[float], percent: float, expected: float) -> None:
    assert percentile(values, percent) == expected
