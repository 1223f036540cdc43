"""The records of everything that must survive a restart, for a rewritten append-only file.

The records of the rooms come first (`RecordKind.current`), then those of the jobs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.core.jobs.job import ACTIVE, DELIVERED, QUEUED, WAIT_REPL
from disqued.core.jobs.walk import Walk
from disqued.core.lifecycle.records import Words
from disqued.persistence.records import forget, stored_state
from disqued.persistence.recordwriter import RecordWriter
from disqued.releases import EXTENDED_FORMAT, FIRST_FORMAT

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState

SLICE_JOBS: Final = 2048
SLICE_BYTES: Final = 1 << 20
"""A part ends at the first of these two limits, or when its time is over."""
_LOOK_JOBS: Final = 16
"""The clock is read once per this many jobs."""
_RECORD_BYTES: Final = 200
"""The approximate size of a record without the body."""
_FORGET_BYTES: Final = 64
"""The approximate size of the record of a finished job."""


class Snapshot:
    """The records of everything that must survive a restart, a part at a time: those of the rooms, then the jobs."""

    def __init__(self, state: NodeState, *, controlled: bool, backup: bool = False) -> None:
        self._state = state
        self._backup: bool = backup
        """Whether it is for a backup: at-most-once jobs have their true state, and finished jobs have a DELJOB."""
        self._controlled: bool = controlled
        """Whether this is the file of a controlled shutdown; see `records.stored_state`."""
        self._writer = RecordWriter(state.holders)
        self._writer.ahead_s = state.wall_ahead_s
        kinds = state.lifecycle.journal.kinds.values()
        self._of_jobs = [kind.of_job for kind in kinds if kind.of_job is not None]
        """Return the records about a job, by kind."""
        self._kinds = list(kinds)
        """The kinds of the rooms that were not begun."""
        self._others: Iterator[list[Words]] | None = None
        """The records of the kind that was begun."""
        self._walk = Walk()
        self._walk.begin()
        self.over: bool = False
        self.jobs: i64 = 0
        """The number of jobs written so far."""

    @property
    def file_format(self) -> i64:
        """The format that the records need so far."""
        return EXTENDED_FORMAT if self._writer.extended else FIRST_FORMAT

    def part(self, time_ns: i64) -> bytes:
        """Return the next records: as many as fit in the time, of bounded size. Sets `over` after the last one."""
        stopwatch_ns = self._state.host.stopwatch_ns
        until_ns: i64 = i64(stopwatch_ns()) + time_ns
        others = self._next_others()
        if others is not None:
            return others
        state = self._state
        table = state.lifecycle.table
        node_id = state.view.node_id
        with_sum = state.config.aof_checksums
        walk = self._walk
        made: list[bytes] = []
        size: i64 = 0
        looked: i64 = 0
        while looked < SLICE_JOBS and size < SLICE_BYTES:
            job = walk.next(table)
            if job is None:
                self.over = True
                break
            looked += 1
            forgotten = job.retry_s == 0 and job.flags & DELIVERED != 0  # the log has no record of it any more
            if (job.state == ACTIVE or job.state == QUEUED) and not forgotten:
                if self._controlled:  # the next run trusts the list
                    state.holders.complete(job, state.view)
                stored = stored_state(job, controlled=self._controlled or self._backup)
                self._writer.keep(made, job, stored, node_id, with_sum=with_sum)
                for of_job in self._of_jobs:
                    words = of_job(job)
                    if words is not None:
                        self._writer.note(made, words, state.lifecycle.journal.formats)
                size += len(job.body) + _RECORD_BYTES
                self.jobs += 1
            elif self._backup and job.state != WAIT_REPL:
                made.append(forget(job.id))
                size += _FORGET_BYTES
            if looked % _LOOK_JOBS == 0 and i64(stopwatch_ns()) >= until_ns:
                break
        return b"".join(made)

    def _next_others(self) -> bytes | None:
        """The next records that are not of jobs; None when there are no more."""
        while True:
            if self._others is not None:
                for records in self._others:
                    made: list[bytes] = []
                    for words in records:
                        self._writer.note(made, words, self._state.lifecycle.journal.formats)
                    return b"".join(made)
            if not self._kinds:
                self._others = None
                return None
            self._others = self._kinds.pop(0).current()
