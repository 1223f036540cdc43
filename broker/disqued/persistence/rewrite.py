"""Rewrites the append-only file while the node serves: no second process, and no pause longer than one slice.

A rewrite walks through all jobs, a slice at a time, and appends a record of each active or queued one to a second file.
Groups of changes that are logged meanwhile are appended there too (`follow`), after what the walk wrote before, and the
first file is written as usual. When the walk is over and everything is synced, the second file gets the name of the
first.

**No job is lost and no finished job returns**, because the last record of each job and queue in a file is its state:

1. What the walk writes of a job is true at that moment, and every later change is in a group that is appended later. A
   change that was noted before the walk and is logged after it does no harm: read in order, the last record of a job
   says the same as the table did. So the second file, read to its end, has the same state as the first one and all
   changes ever noted, in whatever order slices and groups alternate. Jobs that are created behind the walk are in the
   groups. Jobs that are dropped before the walk reaches them are not written, because each job is looked up right
   before it is written.
2. Each file is written by one append at a time, in order. The two files need not wait for each other: until the names
   change only the first one counts, afterwards only the second one.
3. *Closing* is the step that changes the names. The log starts no work on the first file then (`Aof` checks `closing`),
   and the work under way there is waited for. All groups up to that moment were given to the second file; `_covers` is
   the number of the last one. Later groups wait in the log, are in neither file, and their replies are held. Then
   REPLACE syncs the second file and changes the names. If the node crashes before, the first file has everything that
   was confirmed; if it crashes after, the second file has: it contains every group up to `_covers`, and none beyond was
   confirmed. When REPLACE succeeds the log continues at the end of the second file, otherwise at the end of the first
   one; in both cases with the groups that waited.
4. Closing is short: all but the last part of the second file is written and synced before it begins.

When the first file does not count any more (a sync of it failed, all jobs were dropped at once, or the log was just
switched on), groups go to the second file only, and are safe when the names have changed. While the log is off, a
rewrite leaves a file with the state of that moment.

Memory is bounded: while the disk is behind, the walk waits. A rewrite that fails leaves the first file as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.core.host import disk
from disqued.core.host.disk import VERB_NAMES, DiskOwner, DiskWork
from disqued.persistence.marker import RestartMarker
from disqued.persistence.snapshot import Snapshot
from disqued.releases import FIRST_FORMAT

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState
    from disqued.persistence.logfile import LogFile

SLICE_NS: Final = 500_000
"""The time limit of one slice: the longest delay that a slice adds to a reply."""
SLICE_EVERY_MS: Final = 5
"""The interval between slices, which take a tenth of the time of a busy node. The timer wheel is too coarse for it."""
SLICE_AT_REST_MS: Final = 1
"""The interval while clients send few commands."""
FEW_COMMANDS: Final = 5
"""How many commands between two slices are few."""
BEHIND_BYTES: Final = 4 << 20
"""The walk pauses while more than this waits for the disk."""
WRITE_BYTES: Final = 256 << 10
"""Until the walk is over, the second file is written in parts of at least this size: not once per turn of the loop."""
SYNC_BYTES: Final = 32 << 20
"""The second file is synced each time it has grown by this, so that the last sync is short."""
REST_BYTES: Final = 1 << 20
"""Closing begins when no more than this was logged during a sync of the file."""
MAX_ROUNDS: Final = 8
"""Closing begins after this many syncs in any case."""
RETRY_MS: Final = 1000
MAX_RETRY_MS: Final = 8000
"""The delay before a failed rewrite is retried: from RETRY_MS on, doubled after each failure."""

_UNLIMITED_NS: Final = 1 << 61
_IDLE: Final = 0
_OPENING: Final = 1
_WALKING: Final = 2
_SYNCING: Final = 3
_CLOSING: Final = 4
_LAST: Final = 5
"""The rewrite at the end of the node, which `last` describes."""
_LAST_CLOSING: Final = 6


class Rewrite:
    """Rewrites the append-only file of one node, one time after the other.

    Its disk work belongs to `owner`, which passes finished work to `done` and then calls `advance`.
    """

    def __init__(self, state: NodeState, file: LogFile, owner: DiskOwner) -> None:
        self._state = state
        self._file = file
        self._owner = owner
        self._disk = state.host.disk
        self.slice_at_ms: i64 = 0
        """When the next slice is due; 0 if none is."""
        self._step: i64 = _IDLE
        self._snapshot = Snapshot(state, controlled=False)
        self._name = ""
        """The name of the second file."""
        self._size_bytes: i64 = 0
        """The size of the second file."""
        self._unsynced_bytes: i64 = 0
        """The part of the second file that a power loss may take."""
        self._work: DiskWork | None = None
        """The disk work of this rewrite that is under way."""
        self._backlog: list[bytes] = []
        """Records for the second file that were not yet given to the disk."""
        self._backlog_bytes: i64 = 0
        """The size of the backlog."""
        self._rounds: i64 = 0
        """The number of syncs since the walk ended."""
        self._covers: i64 = 0
        """While closing: the number of the last group in the second file."""
        self._again: bool = False
        """Whether the file being put in place is already outdated, so that another rewrite must follow."""
        self._ended: bool = False
        """Whether a rewrite ended during this call of `advance`."""
        self._commands: i64 = 0
        """How many commands the node had run at the last slice."""
        self._began_ns: i64 = 0
        self._began_ms: i64 = 0
        self.last_s: i64 = -1
        """The duration of the last rewrite in seconds; -1 if there was none."""
        self.succeeded: i64 = 0
        """The number of rewrites that succeeded."""
        self.failures: i64 = 0
        """The number of rewrites that failed since the last success."""
        self._not_before_ms: i64 = 0
        """The earliest time of the next automatic rewrite."""
        self.base_bytes: i64 = 0
        """The size of the append-only file after the last rewrite or load."""
        self.last_error = ""
        """Why the rewrite at the end of the node failed; empty if it did not."""

    @property
    def running(self) -> bool:
        """Whether a rewrite is running."""
        return self._step != _IDLE

    @property
    def closing(self) -> bool:
        """Whether no work on the first file may be started because the names are about to change."""
        return self._step in (_CLOSING, _LAST_CLOSING)

    @property
    def replacing(self) -> bool:
        """Whether the names of the files are being changed, so that the rewrite cannot be stopped."""
        work = self._work
        return work is not None and work.verb == disk.REPLACE

    def start(self) -> None:
        """Begin, unless one is running."""
        if self._step != _IDLE:
            return
        state = self._state
        self._step = _OPENING
        self._again = False
        self._snapshot = Snapshot(state, controlled=False)
        self._name = f"temp-rewriteaof-bg-{state.host.facts().process_id}.aof"
        self._size_bytes = 0
        self._unsynced_bytes = 0
        self._rounds = 0
        self._began_ns = i64(state.host.stopwatch_ns())
        self._began_ms = state.now_ms
        state.lifecycle.journal.on = True
        state.lifecycle.journal.next_format = FIRST_FORMAT
        state.host.log("notice", "Rewriting the append only file in the background")
        self._begin(DiskWork(disk.OPEN, self._name))

    def restart(self) -> None:
        """Start again because the second file is outdated or in the wrong directory; at once, or after REPLACE."""
        if self.replacing:
            self._again = True
            return
        self.stop()
        self.start()

    def stop(self) -> None:
        """Cancel the rewrite and remove the second file, unless the change of names has begun."""
        if self._step == _IDLE or self.replacing:
            return
        self._leave()
        self._disk.start(DiskWork(disk.REMOVE, self._name))
        self._state.host.log("notice", "The rewrite of the append only file was stopped")
        self._file.rewrite_ended()

    def settle(self) -> None:
        """End the rewrite now and wait for the disk, because the node shuts down."""
        if self._step == _IDLE:
            return
        self._disk.perform(DiskWork(disk.REMOVE, self._name))  # behind all that was started with this file
        work = self._work
        if work is not None and work.verb == disk.REPLACE:
            self._again = False
            self._work = None
            self._finished(work)
        else:
            self._leave()
            self._file.rewrite_ended()

    def _leave(self) -> None:
        """Be idle."""
        state = self._state
        self.slice_at_ms = 0
        self._step = _IDLE
        self._ended = True
        self._work = None
        self._backlog = []
        self._backlog_bytes = 0
        self._snapshot = Snapshot(state, controlled=False)

    def follow(self, group: bytes) -> None:
        """Append a group of changes that was logged."""
        if self._step != _IDLE:
            self._add(group)

    def _add(self, data: bytes) -> None:
        if data:
            self._backlog.append(data)
            self._backlog_bytes += len(data)

    def slice(self) -> None:
        """Take the next slice of the walk; `advance` follows."""
        self.slice_at_ms = 0
        if self._step != _WALKING:
            return
        if self._backlog_bytes < BEHIND_BYTES:
            self._add(self._snapshot.part(SLICE_NS))
        if not self._snapshot.over:
            self._arm()

    def _arm(self) -> None:
        commands = self._state.throughput.commands.value
        busy = commands - self._commands > FEW_COMMANDS
        self._commands = commands
        self.slice_at_ms = self._state.now_ms + (SLICE_EVERY_MS if busy else SLICE_AT_REST_MS)

    # --- the disk -----------------------------------------------------------------------------------------------------

    def advance(self) -> bool:
        """Start the next disk work, unless some is under way. Returns whether a rewrite ended by that."""
        self._ended = False
        while self._work is None and self._choose():
            pass
        return self._ended

    def done(self, work: DiskWork) -> bool:
        """Continue after finished disk work; return False if it is not of the running rewrite."""
        if work is not self._work:
            return False
        self._work = None
        self._finished(work)
        return True

    def _choose(self) -> bool:
        """Start the next disk work; return False if there is none now."""
        if self._step == _WALKING:
            return self._choose_walking()
        if self._step == _SYNCING:  # alternately, so that a constant stream of changes ends too
            if self._unsynced_bytes > 0 or self._rounds == 0:
                self._begin(DiskWork(disk.SYNC, self._name))
            else:
                self._append()
            return True
        if self._step == _CLOSING:
            return self._choose_closing()
        return False

    def _choose_walking(self) -> bool:
        if self._unsynced_bytes >= SYNC_BYTES and self._state.config.aof_rewrite_incremental_fsync:
            self._begin(DiskWork(disk.SYNC, self._name))
            return True
        if self._snapshot.over:
            self._step = _SYNCING
        elif self._backlog_bytes < WRITE_BYTES:
            return False
        if self._backlog:
            self._append()
        return True

    def _choose_closing(self) -> bool:
        if self._backlog:
            self._append()
        elif self._file.idle:
            work = DiskWork(disk.REPLACE, self._name)
            work.other = self._file.name
            self._begin(work)
        else:
            return False
        return True

    def _append(self) -> None:
        work = DiskWork(disk.APPEND, self._name)
        work.data = self._take_backlog()
        self._begin(work)

    def _take_backlog(self) -> list[bytes]:
        """Empty the backlog, because the second file gets it now."""
        data = self._backlog
        self._backlog = []
        self._size_bytes += self._backlog_bytes
        self._unsynced_bytes += self._backlog_bytes
        self._backlog_bytes = 0
        return data

    def _begin(self, work: DiskWork) -> None:
        self._work = work
        work.owner = self._owner
        self._disk.start(work)
        if work.finished:
            self._work = None
            self._finished(work)

    def _finished(self, work: DiskWork) -> None:
        """Continue after finished disk work."""
        if work.error:
            self._fail(f"can't {VERB_NAMES[work.verb]} {work.name}: {work.error}")
        elif work.verb == disk.OPEN:
            self._opened(work.size)
        elif work.verb == disk.SYNC:
            self._synced()
        elif work.verb == disk.REPLACE:
            self._replaced()
        elif work.verb == disk.REMOVE:
            self._begin(DiskWork(disk.OPEN, self._name))

    def _opened(self, size_bytes: i64) -> None:
        """Begin the walk. A second file that is not empty is left over from a process with the same ID: remove it."""
        if size_bytes > 0:
            self._begin(DiskWork(disk.REMOVE, self._name))
            return
        self._step = _WALKING
        self._arm()

    def _synced(self) -> None:
        """Everything up to the sync is safe: begin to close, unless much was logged during it."""
        self._unsynced_bytes = 0
        if self._step != _SYNCING:
            return
        self._rounds += 1
        if self._backlog_bytes <= REST_BYTES or self._rounds >= MAX_ROUNDS:
            self._step = _CLOSING
            self._covers = self._state.ready.logged

    def _replaced(self) -> None:
        """The second file has the name of the first."""
        state = self._state
        self.last_s = (i64(state.host.stopwatch_ns()) - self._began_ns) // 1_000_000_000
        self.failures = 0
        self.succeeded += 1
        self._not_before_ms = 0
        self.base_bytes = self._size_bytes
        journal = state.lifecycle.journal
        journal.file_format = max(journal.next_format, self._snapshot.file_format)
        jobs = self._snapshot.jobs
        state.host.log("notice", f"The append only file was rewritten: {jobs} jobs, {self._size_bytes} bytes")
        self._leave()
        self._file.replaced(self._size_bytes, self._covers, outdated=self._again)
        if not self._file.enabled:
            self._disk.start(DiskWork(disk.CLOSE, self._file.name))
        self._file.rewrite_ended()
        if self._again:
            self.start()

    def _fail(self, why: str) -> None:
        """Leave the first file as it is."""
        state = self._state
        self.failures += 1
        self._not_before_ms = state.now_ms + min(RETRY_MS << min(self.failures - 1, 8), MAX_RETRY_MS)
        state.host.log("warning", f"The append only file could not be rewritten, the old one stays: {why}")
        self._leave()
        self._disk.start(DiskWork(disk.REMOVE, self._name))
        self._file.rewrite_ended()
        if self._again:
            self.start()

    # --- automatic rewrites -------------------------------------------------------------------------------------------

    def start_if_due(self) -> None:
        """Start a rewrite if the file needs one or has grown enough."""
        state = self._state
        if self._step == _IDLE and state.now_ms >= self._not_before_ms and (self._file.incomplete or self._has_grown()):
            self.start()

    def _has_grown(self) -> bool:
        """Whether the file has grown by `auto-aof-rewrite-percentage`."""
        config = self._state.config
        size_bytes = self._file.size_bytes
        percentage: i64 = config.auto_aof_rewrite_percentage
        if percentage <= 0 or not self._file.enabled or size_bytes <= config.auto_aof_rewrite_min_size:
            return False
        base_bytes: i64 = max(self.base_bytes, 1)
        return size_bytes * 100 // base_bytes - 100 >= percentage

    # --- the end of the node ------------------------------------------------------------------------------------------

    def last(self, *, controlled: bool) -> Iterator[DiskWork]:
        """Rewrite the file at the end of the node, while no rewrite is running: return the disk work, in order.

        The caller completes each work before it asks for the next one. `last_error` says then whether the rewrite
        succeeded; after an error all files are as before. With `controlled` the file is that of a controlled shutdown,
        and nothing may change meanwhile.
        """
        state = self._state
        name = f"temp-rewriteaof-{state.host.facts().process_id}.aof"
        marker = RestartMarker(state, self._file.name) if controlled and state.config.aof_restart_marker else None
        self._snapshot = Snapshot(state, controlled=controlled)
        self._step = _LAST
        self._size_bytes = 0
        self._unsynced_bytes = 0
        self.last_error = ""
        for work in self._last_file(name, marker):
            yield work
            if self._last_failed(work):
                self._leave()
                yield DiskWork(disk.REMOVE, name)
                if marker is not None:
                    yield from marker.removal()
                return
        self.succeeded += 1
        self.base_bytes = self._size_bytes
        state.lifecycle.journal.file_format = self._snapshot.file_format
        jobs = self._snapshot.jobs
        state.host.log("notice", f"The append only file was rewritten: {jobs} jobs, {self._size_bytes} bytes")
        self._leave()
        self._file.replaced(self._size_bytes, self._covers, outdated=False)
        if not self._file.enabled:
            yield DiskWork(disk.CLOSE, self._file.name)
        if marker is None:
            return
        work = marker.naming()
        yield work
        if self._last_failed(work):  # the node continues: with the log on it needs a file of its own, otherwise none
            yield from marker.removal()
            if self._file.enabled:
                self.start()
            else:
                yield DiskWork(disk.REMOVE, self._file.name)

    def _last_file(self, name: str, marker: RestartMarker | None) -> Iterator[DiskWork]:
        """The disk work that makes the last file and the marker, and gives the file its name."""
        incremental = self._state.config.aof_rewrite_incremental_fsync
        yield DiskWork(disk.REMOVE, name)
        yield DiskWork(disk.OPEN, name)
        while not self._snapshot.over:
            self._add(self._snapshot.part(SLICE_NS))
            if self._backlog:
                yield self._last_append(name)
            if incremental and self._unsynced_bytes >= SYNC_BYTES:
                self._unsynced_bytes = 0
                yield DiskWork(disk.SYNC, name)
        self._step = _LAST_CLOSING
        self._covers = self._state.ready.logged
        if marker is not None:
            self._add(marker.seal())
            yield self._last_append(name)
            yield from marker.preparation(self._size_bytes)
        work = DiskWork(disk.REPLACE, name)
        work.other = self._file.name
        yield work

    def _last_append(self, name: str) -> DiskWork:
        """The work that appends the backlog to the last file."""
        work = DiskWork(disk.APPEND, name)
        work.data = self._take_backlog()
        return work

    def _last_failed(self, work: DiskWork) -> bool:
        """Whether a work of the last rewrite failed; notes the error."""
        if work.error:
            self.last_error = f"can't {VERB_NAMES[work.verb]} {work.name}: {work.error}"
        return bool(work.error)

    # --- in figures ---------------------------------------------------------------------------------------------------

    @property
    def current_s(self) -> int:
        """How long the rewrite has been running, in seconds; -1 if none is."""
        return int(self._state.now_ms - self._began_ms) // 1000 if self.running else -1

    @property
    def buffer_bytes(self) -> int:
        """The bytes that wait for the disk or are being written."""
        work = self._work
        writing = sum(map(len, work.data)) if work is not None and work.verb == disk.APPEND else 0
        return int(self._backlog_bytes) + writing
