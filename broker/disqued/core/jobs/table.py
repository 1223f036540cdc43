"""All jobs of a node, by ID.

The table is cut into 256 dicts by characters of the ID: one dict of millions of entries stalls the node for more than
a tenth of a second whenever it grows, one of 256 for less than a millisecond. The cut also carries the scan: a cursor
names a cell, one 64th of a dict again by a character of the ID, so that a scan needs no snapshot and sees every job
that stays exactly once.
"""

from __future__ import annotations

import sys
from typing import Final, TypeVar

from mypy_extensions import i64

from disqued.core.jobs.job import Job

SHARDS: Final = 256
_CELLS_PER_SHARD: Final = 64
_SMALL_DICT_BYTES: Final = 4096
_ENTRY_BYTES: Final = 200
"""No dict that grew by itself takes so much for an entry."""
CELLS: Final = SHARDS * _CELLS_PER_SHARD


def _shard(job_id: bytes) -> i64:
    """Which dict an ID lives in; mixes three random characters, each of which alone is uneven."""
    a: i64 = job_id[11]
    b: i64 = job_id[12]
    c: i64 = job_id[13]
    return (a * 37 + b * 101 + c) & (SHARDS - 1)


def _cell(job_id: bytes) -> i64:
    """Which cell of its dict an ID lives in."""
    a: i64 = job_id[14]
    b: i64 = job_id[15]
    return (a * 7 + b) & (_CELLS_PER_SHARD - 1)


V = TypeVar("V")


def compacted(entries: dict[bytes, V]) -> dict[bytes, V]:
    """The same dict, or a smaller one with the same entries if most of what it held is gone.

    A dict keeps its size as long as nothing is added.
    """
    if sys.getsizeof(entries) > _SMALL_DICT_BYTES + _ENTRY_BYTES * len(entries):
        return dict(entries)
    return entries


class JobTable:
    """The jobs of one node."""

    def __init__(self) -> None:
        self._shards: list[dict[bytes, Job]] = [{} for _ in range(SHARDS)]
        self.count: i64 = 0

    def get(self, job_id: bytes) -> Job | None:
        """The job of a well-formed ID, if it is known."""
        return self._shards[_shard(job_id)].get(job_id)

    def add(self, job: Job) -> None:
        """Register a job that is not known yet."""
        self._shards[_shard(job.id)][job.id] = job
        self.count += 1

    def remove(self, job: Job) -> None:
        """Forget a registered job."""
        del self._shards[_shard(job.id)][job.id]
        self.count -= 1

    def shrink(self, number: int) -> None:
        """Have one of the dicts, whichever number it is, take less memory if most of what it held is gone."""
        at = number % SHARDS
        self._shards[at] = compacted(self._shards[at])

    def jobs(self) -> list[Job]:
        """All jobs, as they are now."""
        return [job for shard in self._shards for job in shard.values()]

    def jobs_of(self, number: i64) -> list[Job]:
        """The jobs of one of the dicts, from 0 up to SHARDS, as they are now."""
        return list(self._shards[number].values())

    def occupied_cell(self, first: int) -> int:
        """The first cell from `first` on in a dict that holds any job; CELLS when there is none."""
        cell = first
        while cell < CELLS and not self._shards[cell // _CELLS_PER_SHARD]:
            cell = (cell // _CELLS_PER_SHARD + 1) * _CELLS_PER_SHARD
        return cell

    def scan_cells(self, first: int, count: int) -> list[list[Job]]:
        """The jobs of up to `count` cells from `first` on, cell by cell, not beyond the dict of the first."""
        shard_number = first // _CELLS_PER_SHARD
        start = first % _CELLS_PER_SHARD
        cells: list[list[Job]] = [[] for _ in range(min(count, _CELLS_PER_SHARD - start))]
        for job in self._shards[shard_number].values():
            at = _cell(job.id) - start
            if 0 <= at < len(cells):
                cells[at].append(job)
        return cells
