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

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.core.host import disk
from disqued.core.host.disk import VERB_NAMES, DiskOwner, DiskWork
from disqued.persistence.marker import RestartMarker
from disqued.persistence.snapshot import Snapshot

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

    @property
    def running(self) -> bool:
        """Whether a rewrite is running."""
        return self._step != _IDLE

    @property
    def closing(self) -> bool:
        """Whether no work on the first file may be started because the names are about to change."""
        return self._step == _CLOSING

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
        state.host.log("notice", "Rewriting the append only file in the background")
        self._begin(DiskWork(disk.OPEN, self._name))

    def restart(self) -> None:
        """Start again because the second file is outdated or in the wrong directory; at once, or after REPLACE."""
        if self._is_replacing():
            self._again = True
            return
        self.stop()
        self.start()

    def stop(self) -> None:
        """Cancel the rewrite and remove the second file, unless the change of names has begun."""
        if self._step == _IDLE or self._is_replacing():
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

    def _is_replacing(self) -> bool:
        work = self._work
        return work is not None and work.verb == disk.REPLACE

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
        if self._backlog:
            self._append()
            return True
        return self._step == _SYNCING

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
        work.data = self._backlog
        self._backlog = []
        self._size_bytes += self._backlog_bytes
        self._unsynced_bytes += self._backlog_bytes
        self._backlog_bytes = 0
        self._begin(work)

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

    def perform(self, *, controlled: bool) -> str:
        """Rewrite at once and wait for the disk. Returns the error, empty on success; an error changes no file."""
        state = self._state
        self.settle()
        name = f"temp-rewriteaof-{state.host.facts().process_id}.aof"
        snapshot = Snapshot(state, controlled=controlled)
        marker = RestartMarker(state, self._file.name) if controlled and state.config.aof_restart_marker else None
        size_bytes: i64 = 0
        error = self._perform(DiskWork(disk.REMOVE, name)) or self._perform(DiskWork(disk.OPEN, name))
        while not error and not snapshot.over:
            work = DiskWork(disk.APPEND, name)
            part = snapshot.part(_UNLIMITED_NS)
            if part:
                work.data = [part]
                size_bytes += len(part)
                error = self._perform(work)
        if not error and marker is not None:
            work = DiskWork(disk.APPEND, name)
            work.data = [marker.seal()]
            size_bytes += len(work.data[0])
            error = self._perform(work) or marker.prepare(size_bytes)
        if not error:
            work = DiskWork(disk.REPLACE, name)
            work.other = self._file.name
            error = self._perform(work)
        if error:
            self._disk.perform(DiskWork(disk.REMOVE, name))
            if marker is not None:
                marker.give_up()
            return error
        self.succeeded += 1
        self.base_bytes = size_bytes
        state.host.log("notice", f"The append only file was rewritten: {snapshot.jobs} jobs, {size_bytes} bytes")
        self._file.replaced(size_bytes, state.ready.logged, outdated=False)
        if not self._file.enabled:
            self._disk.start(DiskWork(disk.CLOSE, self._file.name))
        return self._leave_marker(marker) if marker is not None else ""

    def _leave_marker(self, marker: RestartMarker) -> str:
        """Put the restart marker beside the file. Returns the error, empty on success.

        After an error the node continues. With the log on it needs a file of its own; with the log off it must not
        leave this file.
        """
        error = marker.leave()
        if error:
            marker.give_up()
            if self._file.enabled:
                self.start()
            else:
                self._disk.start(DiskWork(disk.REMOVE, self._file.name))
        return error

    def _perform(self, work: DiskWork) -> str:
        """Do disk work and wait for it. Returns the error, empty on success."""
        self._disk.perform(work)
        return f"can't {VERB_NAMES[work.verb]} {work.name}: {work.error}" if work.error else ""

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
