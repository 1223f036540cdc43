"""The table of jobs: jobs are found by ID, and scanned cell by cell while jobs are added and removed."""

from __future__ import annotations

import random

from disqued.core.jobs.job import Job
from disqued.core.jobs.jobid import JobIds
from disqued.core.jobs.table import CELLS, SHARDS, JobTable
from disqued.core.jobs.walk import Walk


def jobs(count: int, seed: int = 0) -> list[Job]:
    ids = JobIds(b"5ca1ab1e" + b"0" * 32, random.Random(seed).randbytes)
    return [
        Job(ids.make(ttl_s=600, at_least_once=True), b"queue", b"", number, 2_000_000_000, 0, 60, 1)
        for number in range(count)
    ]


def filled(members: list[Job]) -> JobTable:
    table = JobTable()
    for job in members:
        table.add(job)
    return table


def scan(table: JobTable, cells_per_call: int) -> list[list[Job]]:
    """All cells, some per call."""
    cells: list[list[Job]] = []
    while len(cells) < CELLS:
        page = table.scan_cells(len(cells), cells_per_call)
        assert 1 <= len(page) <= cells_per_call, "a call scans at least one cell, and no more than it was asked for"
        cells += page
    assert len(cells) == CELLS
    return cells


def test_a_job_is_found_by_its_id_until_it_is_removed() -> None:
    members = jobs(1000)
    table = filled(members)
    assert table.count == 1000
    assert all(table.get(job.id) is job for job in members)
    table.remove(members[0])
    assert table.get(members[0].id) is None
    assert table.count == 999
    assert set(table.jobs()) == set(members[1:])


def test_unknown_ids_are_not_found() -> None:
    table = filled(jobs(10))
    assert table.get(b"D-" + b"\xff" * 8 + b"-" + b"\xff" * 24 + b"-\xff\xff\xff\xff") is None


def test_a_scan_with_any_page_size_returns_every_job_once() -> None:
    members = jobs(3000)
    table = filled(members)
    for cells_per_call in (1, 7, 64, 1000):
        found = [job for cell in scan(table, cells_per_call) for job in cell]
        assert len(found) == len(members)
        assert set(found) == set(members)


def test_a_scan_returns_each_job_that_stays_exactly_once() -> None:
    chance = random.Random(1)
    lasting, guests = jobs(500, seed=2), jobs(2000, seed=3)
    table = filled(lasting)
    present: set[Job] = set()
    seen: list[Job] = []
    at = 0
    while at < CELLS:
        page = table.scan_cells(at, 16)
        at += len(page)
        seen += [job for cell in page for job in cell]
        for guest in chance.sample(guests, 5):
            if guest in present:
                table.remove(guest)
                present.remove(guest)
            else:
                table.add(guest)
                present.add(guest)
    assert sorted(job.id for job in seen if job in set(lasting)) == sorted(job.id for job in lasting)
    assert len(seen) == len(set(seen)), "other jobs are not returned twice"


def test_cells_are_filled_evenly() -> None:
    cells = scan(filled(jobs(CELLS)), 64)
    assert max(map(len, cells)) <= 12, "one job per cell on average"
    shards = [sum(map(len, cells[at : at + 64])) for at in range(0, CELLS, 64)]
    assert max(shards) < 2 * 64 * 1.5
    assert min(shards) > 64 / 2


def test_a_walk_returns_each_job_that_stays_once_and_no_removed_job() -> None:
    members = jobs(3000)
    table = filled(members)
    leaving = random.Random(1).sample(members, 1500)
    walk = Walk()
    walk.begin()
    seen: list[Job] = []
    while (job := walk.next(table)) is not None:
        assert table.get(job.id) is job
        seen.append(job)
        if leaving:
            table.remove(leaving.pop())
    assert walk.over
    assert len(seen) == len({job.id for job in seen})
    assert {job.id for job in members if table.get(job.id) is job} <= {job.id for job in seen}


def test_the_dicts_of_a_table_hold_all_its_jobs() -> None:
    table = filled(jobs(3000))
    assert sorted(job.id for number in range(SHARDS) for job in table.jobs_of(number)) == sorted(
        job.id for job in table.jobs()
    )
