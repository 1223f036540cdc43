"""The choice of the worker that the demonstration kills."""

from __future__ import annotations

from disqued.client import JobId
from disqued.demo.producer import Added
from disqued.demo.report import Report, WorkerReport
from disqued.demo.worker import Acknowledged, Fetched
from disqued.demo.workers import _is_victim

JOBS = tuple(JobId(str(number)) for number in range(8))


def victims(*batches: tuple[JobId, ...], workers: int = 2) -> list[tuple[JobId, ...]]:
    """Return the batches at which the first worker would be killed if it processes these."""
    report = Report(len(JOBS), workers=[WorkerReport(str(number)) for number in range(workers)])
    report.added(Added(JOBS, 1.0, ()))
    worker = report.workers[0]
    found = []
    for batch in batches:
        report.record(worker, Fetched(batch, 2.0))
        if _is_victim(worker, report):
            found.append(batch)
        for job_id in batch:
            report.record(worker, Acknowledged(job_id, 3.0))
    return found


def test_worker_is_killed_when_it_fetches_several_jobs_in_the_second_half() -> None:
    assert victims(JOBS[:3], JOBS[3:5])[0] == JOBS[3:5]


def test_worker_with_one_job_is_killed_when_the_run_is_nearly_over() -> None:
    assert victims(*((job_id,) for job_id in JOBS))[0] == JOBS[5:6]


def test_only_worker_is_never_killed() -> None:
    assert victims(JOBS[:4], JOBS[4:], workers=1) == []
