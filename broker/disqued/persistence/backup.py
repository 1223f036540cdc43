"""The backup of one node: a copy of its jobs in a file of its own, which BACKUP READ sends to the client.

The copy is made like a rewrite: a walk through all jobs writes a record of each, and the changes that are logged
meanwhile follow. Unlike a rewritten file it also says which jobs are finished (DELJOB), and which left for another node
(MOVED), because whoever merges the copies of several nodes must know why a job is missing in one of them.

**No finished job comes back and no job is lost when the copies of all members are merged**, if the client ends no copy
(BACKUP END) before the walks of all members are over (the reply to BACKUP BEGIN):

1. A job that was acknowledged before the backup began is acknowledged in the table of some member, until all its
   holders know. If the walk of that member finds it, the copy says that it is finished. Otherwise all holders knew
   before that walk was over, hence before any copy ended, and no copy has the job as its last record.
2. A job that moves from one member to another meanwhile is in the copy of the first one, as a record of the walk or of
   a change, and MOVED behind its DELJOB says that it is not finished. So it does not matter whether the copy of the
   second one ended before the job arrived.

While the copy follows the changes it grows, and the file of the node is not touched. A client that sends no request for
IDLE_MS has gone: the copy is removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.core.host import disk
from disqued.core.host.disk import VERB_NAMES, DiskOwner, DiskWork
from disqued.persistence.rewrite import BEHIND_BYTES, SLICE_AT_REST_MS, SLICE_EVERY_MS, SLICE_NS, WRITE_BYTES
from disqued.persistence.snapshot import Snapshot
from disqued.resp.writer import request

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState

IDLE_MS: Final = 120_000
"""A copy is removed when no request for it came for this long."""
READ_BYTES: Final = 1 << 20
"""How much one BACKUP READ returns at most."""
MOVED: Final = b"MOVED"
"""The record of a job that another node keeps; only copies have it."""
_FEW_COMMANDS: Final = 5
_NONE: Final = 0
_WALKING: Final = 1
_FOLLOWING: Final = 2
_ENDING: Final = 3
_COMPLETE: Final = 4


class Backup(DiskOwner):
    """Makes the copy of one node; there is one at a time."""

    def __init__(self, state: NodeState) -> None:
        super().__init__()
        self._state = state
        self._step: i64 = _NONE
        self._number: i64 = 0
        self._snapshot = Snapshot(state, controlled=False)
        self._name = ""
        self._backlog: list[bytes] = []
        self._backlog_bytes: i64 = 0
        self._work: DiskWork | None = None
        """The disk work that is under way."""
        self._used_ms: i64 = 0
        """When the last request for the copy came."""
        self._commands: i64 = 0
        """How many commands the node had run at the last slice."""
        self.size_bytes: i64 = 0
        self.jobs: i64 = 0
        """The number of jobs that the walk found."""
        self.slice_at_ms: i64 = 0
        """When the next slice of the walk is due; 0 if none is."""
        self.failure = ""
        """Why the copy of the last client cannot be completed; empty if it can."""

    @property
    def id(self) -> bytes:
        """The ID of the copy that is being made, or was made last."""
        return b"%d-%d" % (self._state.host.facts().process_id, self._number)

    @property
    def following(self) -> bool:
        """Whether changes are copied."""
        return self._step in (_WALKING, _FOLLOWING)

    @property
    def in_use(self) -> bool:
        """Whether a client makes or reads a copy."""
        return self._step != _NONE

    @property
    def walked(self) -> bool:
        """Whether the copy has all jobs, and only follows the changes."""
        return self._step == _FOLLOWING

    @property
    def complete(self) -> bool:
        """Whether the copy can be read."""
        return self._step == _COMPLETE

    @property
    def buffer_bytes(self) -> i64:
        """The records that wait for the disk."""
        return self._backlog_bytes

    def begin(self) -> None:
        """Begin a copy."""
        state = self._state
        self._number += 1
        self._name = f"temp-rewriteaof-backup-{state.host.facts().process_id}.aof"
        self._step = _WALKING
        self._snapshot = Snapshot(state, controlled=False, backup=True)
        self._commands = state.throughput.commands.value
        self.size_bytes = self.jobs = 0
        self.failure = ""
        state.lifecycle.journal.copying = True
        self.touch()
        self._start(DiskWork(disk.REMOVE, self._name))

    def touch(self) -> None:
        """Note that the client still wants the copy."""
        self._used_ms = self._state.now_ms

    def follow(self, group: bytes, moved: list[bytes]) -> None:
        """Append a group of changes, and which jobs left for another node in the same turn."""
        self._add(group)
        for job_id in moved:
            self._add(request((MOVED, job_id)))
        self._advance()

    def end(self) -> None:
        """Follow no further changes, and write what remains. The caller logged the changes of this turn before."""
        if self._step == _FOLLOWING:
            self._step = _ENDING
            self._state.lifecycle.journal.copying = False
            self._advance()

    def read(self, offset: i64) -> DiskWork:
        """Begin to read from a complete copy; the caller waits for the work."""
        work = DiskWork(disk.READ, self._name, self)
        work.offset = offset
        work.size = READ_BYTES
        self._state.host.disk.start(work)
        return work

    def close(self) -> None:
        """Remove the copy."""
        if self._step == _NONE:
            return
        self._step = _NONE
        self.slice_at_ms = 0
        journal = self._state.lifecycle.journal
        journal.copying = False
        journal.moved.clear()
        self._snapshot = Snapshot(self._state, controlled=False)
        self._backlog = []
        self._backlog_bytes = 0
        self._work = None
        self._state.host.disk.start(DiskWork(disk.REMOVE, self._name))

    def fail(self, why: str) -> None:
        """Remove the copy, because it cannot become complete."""
        if self._step != _NONE:
            self.close()
            self.failure = why
            self._state.host.log("warning", f"The backup was stopped: {why}")

    def cron(self) -> None:
        """Remove a copy whose client has gone."""
        if self._step != _NONE and self._state.now_ms - self._used_ms >= IDLE_MS:
            self.fail(f"no request for it came for {IDLE_MS // 1000} seconds")

    # --- the walk -----------------------------------------------------------------------------------------------------

    def slice(self) -> None:
        """Take the next slice of the walk."""
        self.slice_at_ms = 0
        if self._step != _WALKING:
            return
        self.touch()
        if self._backlog_bytes < BEHIND_BYTES:
            self._add(self._snapshot.part(SLICE_NS))
        if not self._snapshot.over:
            self._arm()
        self._advance()

    def _arm(self) -> None:
        commands = self._state.throughput.commands.value
        busy = commands - self._commands > _FEW_COMMANDS
        self._commands = commands
        self.slice_at_ms = self._state.now_ms + (SLICE_EVERY_MS if busy else SLICE_AT_REST_MS)

    def _add(self, data: bytes) -> None:
        if data:
            self._backlog.append(data)
            self._backlog_bytes += len(data)

    # --- the disk -----------------------------------------------------------------------------------------------------

    def _advance(self) -> None:
        """Write the next part, unless one is being written; find out how far the copy is."""
        if self._step == _WALKING and self._snapshot.over:
            self._step = _FOLLOWING
            self.jobs = self._snapshot.jobs
        if self._work is not None or self._step == _NONE or self._step == _COMPLETE:
            return
        if self._backlog_bytes >= (1 if self._step == _ENDING else WRITE_BYTES):
            work = DiskWork(disk.APPEND, self._name)
            work.data = self._backlog
            self.size_bytes += self._backlog_bytes
            self._backlog = []
            self._backlog_bytes = 0
            self._start(work)
        elif self._step == _ENDING:
            self._step = _COMPLETE

    def _start(self, work: DiskWork) -> None:
        self._work = work
        work.owner = self
        self._state.host.disk.start(work)
        if work.finished:
            self.disk_done(work)

    def disk_done(self, work: DiskWork) -> None:
        """Continue after finished disk work; ignore that of a copy that was removed."""
        if work is not self._work:
            return
        self._work = None
        if work.error:
            self.fail(f"can't {VERB_NAMES[work.verb]} {work.name}: {work.error}")
        elif work.verb == disk.REMOVE:
            self._start(DiskWork(disk.OPEN, self._name))
        elif work.verb == disk.OPEN:
            self._arm()
        else:
            self._advance()
