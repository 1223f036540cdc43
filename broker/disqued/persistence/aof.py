"""The append only file while the node runs: what is written when, what waits for it, and what happens when it can not.

Once per turn of the event loop the changes of the turn become one group of records (`turn`), which is given to the disk
before anything that depends on it is said (`core.gate`). When a group counts as safe is the policy, `appendfsync`:

- `no`, `everysec`: when it was written, so that it survives the end of this process. With `everysec` the file is
  synced once per second, so that it survives a loss of power then.
- `always`: when it was synced. Groups that come while a sync runs are synced together by the next one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.core import disk
from disqued.core.disk import DiskWork
from disqued.persistence.recordwriter import RecordWriter

if TYPE_CHECKING:
    from disqued.core.state import NodeState
    from disqued.core.subsystem import Fields

OFF: Final = 0
WAIT_REWRITE: Final = 1
"""Switched on while the node runs: the file is complete when it was written anew for the first time."""
ON: Final = 2
STATUS_NAMES: Final = ("off", "wait-rewrite", "on")

SYNC_MS: Final = 1000
RETRY_MS: Final = 1000


class Aof:
    """The append only file of one node."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self._disk = state.host.disk
        self.name: str = state.config.appendfilename
        self.status: i64 = OFF
        self.size_bytes: i64 = 0
        self._records = RecordWriter(state.holders)
        self._waiting: list[bytes] = []
        """Groups that were not given to the disk yet."""
        self._append: DiskWork | None = None
        self._append_to: i64 = 0
        """The last group in what is being written,"""
        self._appended: i64 = 0
        """in what was written,"""
        self._sync: DiskWork | None = None
        self._sync_to: i64 = 0
        """in what is being synced,"""
        self._synced: i64 = 0
        """and in what was synced."""
        self._synced_ms: i64 = state.now_ms
        """When the last sync began."""
        self._failed_ms: i64 = 0
        """When writing failed last; 0 while it works."""

    def start(self) -> None:
        """Open the file if it is to be used, and load it."""
        if not self._state.config.appendonly:
            return
        work = DiskWork(disk.OPEN, self.name)
        self._disk.perform(work)
        self.size_bytes = work.size
        self.status = ON
        self._state.lifecycle.journal.on = True

    def turn(self) -> None:
        """Give what changed to the disk, before anything else that comes of it is carried out."""
        state = self._state
        journal = state.lifecycle.journal
        if journal.changes:
            group = self._records.group(journal, state.view.node_id, with_sum=state.config.aof_checksums)
            if group:
                self._waiting.append(group)
                state.ready.logged += 1
        self._go_on()

    def _go_on(self) -> None:
        """Start what is to be done next."""
        ready = self._state.ready
        if self._append is None and self._waiting and self._failed_ms == 0:
            work = DiskWork(disk.APPEND, self.name)
            work.data = self._waiting
            self._waiting = []
            self._append = work
            self._append_to = ready.logged
            self._disk.start(work)
            if work.finished:
                self._append_done(work)
        self._sync_if_due()
        ready.safe = self._synced if self._state.config.appendfsync == "always" else self._appended

    def _append_done(self, work: DiskWork) -> None:
        self._append = None
        if work.error:
            self._waiting = work.data + self._waiting
            self._failed_ms = self._state.now_ms
            return
        self._appended = self._append_to
        for data in work.data:
            self.size_bytes += len(data)

    def _sync_if_due(self) -> None:
        state = self._state
        policy = state.config.appendfsync
        if self._sync is not None or self._synced == self._appended or policy == "no":
            return
        if policy == "everysec" and state.now_ms - self._synced_ms < SYNC_MS:
            return
        work = DiskWork(disk.SYNC, self.name)
        self._sync = work
        self._sync_to = self._appended
        self._synced_ms = state.now_ms
        self._disk.start(work)
        if work.finished:
            self._sync_done(work)

    def _sync_done(self, work: DiskWork) -> None:
        self._sync = None
        if not work.error:
            self._synced = self._sync_to

    def done(self, work: DiskWork) -> None:
        """The disk is done with something that was started."""
        if work is self._append:
            self._append_done(work)
        elif work is self._sync:
            self._sync_done(work)
        self._go_on()

    def switch(self) -> None:
        """Begin to log, or stop, as the configuration says now."""

    def move(self) -> None:
        """The working directory is another one: the file is written anew there."""

    def drop_all(self) -> None:
        """All jobs were dropped at once: the file is written anew, and counts no more before that is done."""

    def end(self, *, rewrite: bool) -> str:  # noqa: ARG002
        """The node ends: see that all is on disk. Returns what went wrong."""
        return ""

    def status_fields(self) -> Fields:
        """What INFO shows."""
        return [
            ("loading", int(self._state.loading)),
            ("aof_enabled", int(self.status != OFF)),
            ("aof_state", STATUS_NAMES[self.status]),
            ("aof_rewrite_in_progress", 0),
            ("aof_rewrite_scheduled", 0),
            ("aof_last_rewrite_time_sec", -1),
            ("aof_current_rewrite_time_sec", -1),
            ("aof_last_bgrewrite_status", "ok"),
            ("aof_last_write_status", "ok"),
        ]

    def cron(self) -> None:
        """Regular duties: sync, and try again what failed."""
        if self._failed_ms > 0 and self._state.now_ms - self._failed_ms >= RETRY_MS:
            self._failed_ms = 0
        self._go_on()


def aof_of(state: NodeState) -> Aof:
    """The append only file of a node."""
    keeper = state.keeper
    assert isinstance(keeper, Aof)
    return keeper


def cron(state: NodeState) -> None:
    """Ten times per second."""
    aof_of(state).cron()
