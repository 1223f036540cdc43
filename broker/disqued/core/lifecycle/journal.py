"""The journal: what changed in this turn of the event loop. The persistence room turns it into records.

The changes of a turn become one group of records at the end of the turn. A job is therefore logged as it is at the end
of the turn, with its holders and with the flag of a delivery in the same turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import i64

from disqued.core.lifecycle.records import NodeRecords, RecordTable, Words
from disqued.releases import FIRST_FORMAT

if TYPE_CHECKING:
    from disqued.core.jobs.job import Job


class Journal:
    """The changes of this turn, in order. While it is off and nothing is copied, nothing is noted."""

    def __init__(self) -> None:
        self.on: bool = False
        """Whether changes are logged. Set by the persistence room."""
        self.copying: bool = False
        """Whether changes are copied to a backup. Set by the persistence room."""
        self.must_sync: bool = False
        """Whether the changes must be synced, whatever the sync policy, before anybody learns of them."""
        self.changes: list[object] = []
        """Each change is a job to keep, the ID of a job to forget, or the words of another record."""
        self.moved: list[bytes] = []
        """While changes are copied: the IDs of the jobs that another node keeps from this turn on."""
        self.formats = RecordTable()
        """The kinds of records that the rooms of this node declare."""
        self.file_format: i64 = FIRST_FORMAT
        """The format that the append-only file has."""
        self.next_format: i64 = FIRST_FORMAT
        """The format that the changes need which were logged since the last rewrite of the file began."""
        self.kinds: dict[bytes, NodeRecords] = {}
        """What this node does with them, by name."""

    def keep(self, job: Job) -> None:
        """Note that the job must survive a restart, until `forget`."""
        if self.on or self.copying:
            self.changes.append(job)

    def forget(self, job: Job) -> None:
        """Note that the job is done or gone and must not come back after a restart.

        The record that keeps a delayed at-most-once job says that it was never queued. If a power loss took only the
        record of its end, the job would be queued again when its delay is over. So that one is synced.
        """
        if self.on or self.copying:
            self.changes.append(job.id)
            if job.retry_s == 0 and job.delay_s > 0:
                self.must_sync = True

    def note(self, words: Words) -> None:
        """Note a record of a kind that a room declares, the name of the kind first."""
        assert words[0] in self.kinds, words[0]
        if self.on or self.copying:
            self.changes.append(words)

    def note_format(self, needed: i64) -> None:
        """Note the format that changes need which are logged now."""
        self.file_format = max(self.file_format, needed)
        self.next_format = max(self.next_format, needed)

    def move(self, job: Job) -> None:
        """Note that another node keeps the job from now on, so that the caller drops it here though it is not done."""
        if self.copying:
            self.moved.append(job.id)
