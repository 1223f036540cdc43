"""All jobs of a node, by ID.

The table is split into 256 dicts by characters of the ID. A single dict of millions of entries would stall the node for
more than a tenth of a second when it grows; one of 256 does so for less than a millisecond. Scans use the same split: a
cursor is the number of a cell, one 64th of a dict, again by characters of the ID. A scan therefore needs no snapshot
and returns each job that stays exactly once.
"""

from __future__ import annotations

import sys
from typing import Final, TypeVar

from mypy_extensions import i64

from disqued.core.jobs.attributes import ORIGIN_ID
from disqued.core.jobs.job import NOBODY, Job, NodeIds

SHARDS: Final = 256
LAST_ERA: Final = 255
MOST_SEEN: Final = 100_000
"""A bound on the memory."""
_CELLS_PER_SHARD: Final = 64
_SMALL_DICT_BYTES: Final = 4096
_ENTRY_BYTES: Final = 200
"""More than a dict that was only added to takes for an entry."""
CELLS: Final = SHARDS * _CELLS_PER_SHARD


def shard_of(job_id: bytes) -> i64:
    """The number of the dict that holds an ID, from three random characters; one alone is unevenly distributed."""
    a: i64 = job_id[11]
    b: i64 = job_id[12]
    c: i64 = job_id[13]
    return (a * 37 + b * 101 + c) & (SHARDS - 1)


def _cell(job_id: bytes) -> i64:
    """The cell of its dict to which an ID belongs."""
    a: i64 = job_id[14]
    b: i64 = job_id[15]
    return (a * 7 + b) & (_CELLS_PER_SHARD - 1)


V = TypeVar("V")


def compacted(entries: dict[bytes, V]) -> dict[bytes, V]:
    """The same dict, or a smaller copy if most of its entries were removed.

    A dict does not shrink when entries are removed.
    """
    if sys.getsizeof(entries) > _SMALL_DICT_BYTES + _ENTRY_BYTES * len(entries):
        return dict(entries)
    return entries


class JobTable:
    """The jobs of one node."""

    def __init__(self) -> None:
        self._shards: list[dict[bytes, Job]] = [{} for _ in range(SHARDS)]
        self.count: i64 = 0
        self.latest_expiry_s: i64 = 0
        """The latest expiry of all jobs that were ever registered, in unix seconds."""
        self.named: dict[bytes, Job] = {}
        """The jobs whose IDs were given or derived."""
        self.chains: dict[bytes, list[Job]] = {}
        """The successors of jobs that were moved, by the ID of the first job of their chain."""
        self.era: i64 = 0
        """Changes when another node starts again; from 0 to 255. See `Job.era`."""
        self.settling: bool = False
        """Whether it is not known yet for all jobs what a node that started again has lost. Meanwhile it is noted which
        nodes are seen to have which jobs of former eras."""
        self.seen: dict[bytes, NodeIds] = {}
        """These nodes, by the ID of the job."""

    def begin_era(self, node_id: bytes) -> None:
        """Another node started again: jobs that are registered from now on have another era."""
        self.era = (self.era + 1) & LAST_ERA
        self.settling = True
        for job_id, node_ids in self.seen.items():
            if node_id in node_ids:
                self.seen[job_id] = tuple([seen for seen in node_ids if seen != node_id])

    def note_seen(self, job: Job, node_ids: NodeIds) -> None:
        """Note that nodes have a job now. Call it only while `settling`."""
        if job.era != self.era and len(self.seen) < MOST_SEEN:
            self.seen[job.id] = self.seen.get(job.id, NOBODY) + node_ids

    def settle(self) -> None:
        """It is known what nodes that started again have lost."""
        self.settling = False
        self.seen = {}

    def get(self, job_id: bytes) -> Job | None:
        """The job with this well-formed ID, or None."""
        return self._shards[shard_of(job_id)].get(job_id)

    def add(self, job: Job) -> None:
        """Register a job whose ID is not registered."""
        self._shards[shard_of(job.id)][job.id] = job
        self.count += 1
        if job.expire_at_s > self.latest_expiry_s:
            self.latest_expiry_s = job.expire_at_s
        if not job.is_dummy:
            job.era = self.era
        if job.is_named:
            self.note_named(job)

    def note_named(self, job: Job) -> None:
        """Note that the ID of a registered job was given or derived, and of which chain of moves it is."""
        self.named[job.id] = job
        assert job.extra is not None
        origin = job.extra.get(ORIGIN_ID)
        if origin is not None:
            links = self.chains.setdefault(origin, [])
            if job not in links:
                links.append(job)

    def remove(self, job: Job) -> None:
        """Remove a registered job."""
        del self._shards[shard_of(job.id)][job.id]
        self.count -= 1
        if job.is_named:
            del self.named[job.id]
            assert job.extra is not None
            origin = job.extra.get(ORIGIN_ID)
            links = None if origin is None else self.chains.get(origin)
            if origin is not None and links is not None:
                links.remove(job)
                if not links:
                    del self.chains[origin]

    def take_all(self) -> list[dict[bytes, Job]]:
        """Remove all jobs at once, and return the dicts that hold them."""
        taken = self._shards
        self._shards = [{} for _ in range(SHARDS)]
        self.count = 0
        self.named = {}
        self.chains = {}
        return taken

    def shrink(self, number: int) -> None:
        """Compact dict `number` (modulo the number of dicts) if most of its entries are gone."""
        at = number % SHARDS
        self._shards[at] = compacted(self._shards[at])

    def jobs(self) -> list[Job]:
        """A list of all jobs."""
        return [job for shard in self._shards for job in shard.values()]

    def jobs_of(self, number: i64) -> list[Job]:
        """A list of the jobs in one dict; `number` is less than SHARDS."""
        return list(self._shards[number].values())

    def occupied_cell(self, first: int) -> int:
        """The first cell, beginning with `first`, in a dict that holds jobs; CELLS if there is none."""
        cell = first
        while cell < CELLS and not self._shards[cell // _CELLS_PER_SHARD]:
            cell = (cell // _CELLS_PER_SHARD + 1) * _CELLS_PER_SHARD
        return cell

    def scan_cells(self, first: int, count: int) -> list[list[Job]]:
        """The jobs of up to `count` cells beginning with `first`, one list per cell, all in the dict of the first."""
        shard_number = first // _CELLS_PER_SHARD
        start = first % _CELLS_PER_SHARD
        cells: list[list[Job]] = [[] for _ in range(min(count, _CELLS_PER_SHARD - start))]
        for job in self._shards[shard_number].values():
            at = _cell(job.id) - start
            if 0 <= at < len(cells):
                cells[at].append(job)
        return cells
