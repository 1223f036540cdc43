"""Which worker of the demonstration is killed, and when."""

from __future__ import annotations

from disqued.client import JobId
from disqued.demo.crew import _is_victim
from disqued.demo.producer import Added
from disqued.demo.tally import Tally, WorkerTally
from disqued.demo.worker import Acknowledged, Taken

JOBS = tuple(JobId(str(number)) for number in range(8))


def victims(*batches: tuple[JobId, ...], workers: int = 2) -> list[tuple[JobId, ...]]:
    """With which batches in hand the first worker is killed, when it takes these and does them."""
    tally = Tally(len(JOBS), workers=[WorkerTally(str(number)) for number in range(workers)])
    tally.added(Added(JOBS, 1.0, ()))
    worker = tally.workers[0]
    found = []
    for batch in batches:
        tally.report(worker, Taken(batch, 2.0))
        if _is_victim(worker, tally):
            found.append(batch)
        for job_id in batch:
            tally.report(worker, Acknowledged(job_id, 3.0))
    return found


def test_one_that_takes_several_jobs_in_the_second_half() -> None:
    assert victims(JOBS[:3], JOBS[3:5])[0] == JOBS[3:5]


def test_one_that_takes_them_one_by_one_when_it_is_nearly_over() -> None:
    assert victims(*((job_id,) for job_id in JOBS))[0] == JOBS[5:6]


def test_nobody_who_is_alone() -> None:
    assert victims(JOBS[:4], JOBS[4:], workers=1) == []
