"""Writing the append only file anew, while the node serves on: no second process, and no pause of more than a slice.

A rewrite walks through all jobs, a slice at a time, and appends a record of each that is active or queued to a second
file. Groups of changes that are logged meanwhile are appended there too (`follow`), behind what was walked before, and
the first file goes on being written. When the walk is over and what was written is synced, the second file gets the
name of the first.

**Nothing is lost and nothing comes back**, because of every job and queue the last record in a file says what is true:

1. What the walk writes of a job is true at that moment, and every change after that moment is in a group that is
   appended later. A note that was made before and is logged after it does no harm: read in order, the last note about
   a job says the same as the table did. So the second file, read to its end, says what the first one says and all that
   was ever noted, however slices and groups alternate. Jobs that are made behind the walk are in the groups; jobs that
   go before it comes to them are not written; a job is looked up again before it is written, so none is written that
   has gone.
2. Each file is written by one append at a time, in order; the two files do not wait for each other, and need not: until
   the change of names only the first one counts, afterwards only the second one.
3. *Closing* is the time of the change. The log starts nothing for the first file then (`Aof` looks at `closing`), and
   what is under way there is waited for. All groups up to that moment have been given to this stream, and `_covers` is
   the number of the last one; groups that come now wait in the log, are in neither file, and their replies are held.
   Then REPLACE syncs the second file and changes the names. If the node ends before, the first file has all that was
   promised, if later, the second one has: it contains every group up to `_covers`, and none beyond was promised. When
   REPLACE succeeded the log goes on behind the second file, when it failed behind the first one; either way with the
   groups that waited.
4. Closing is short: all but the last part of the second file is written and synced before it begins.

When the first file does not count any more (a sync of it failed, all jobs were dropped at once, or the log was switched
on just now) groups go to the second one only, and are safe when the names have changed. With the log off a rewrite
leaves a file of that moment behind.

Memory is bounded: while the disk is behind, the walk waits. A rewrite that fails leaves the first file as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.core.host import disk
from disqued.core.host.disk import VERB_NAMES, DiskOwner, DiskWork
from disqued.core.jobs.job import ACTIVE, DELIVERED, QUEUED
from disqued.core.jobs.walk import Walk
from disqued.core.lifecycle.records import Words
from disqued.persistence.mark import RestartMark
from disqued.persistence.records import stored_state
from disqued.persistence.recordwriter import RecordWriter
from disqued.resp.writer import request

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState
    from disqued.core.telemetry.fields import Fields
    from disqued.persistence.aof import Aof

SLICE_NS: Final = 1_000_000
"""How long one slice may take: what a client waits longer at most."""
SLICE_EVERY_MS: Final = 4
"""From slice to slice: a quarter of the time at most. (The timers of wake times is too coarse for this.)"""
SLICE_JOBS: Final = 2048
SLICE_BYTES: Final = 1 << 20
"""A slice ends with the first of these three."""
_LOOK_JOBS: Final = 16
"""How many jobs are written between two looks at the clock."""
_RECORD_BYTES: Final = 200
"""What a record has besides the body, roughly."""
BEHIND_BYTES: Final = 4 << 20
"""While more than this waits for the disk, the walk waits."""
SYNC_BYTES: Final = 32 << 20
"""The second file is synced whenever it grew by this, so that not all of it is to be written at the end."""
REST_BYTES: Final = 1 << 20
"""Closing begins when no more than this came while the file was synced,"""
MAX_ROUNDS: Final = 8
"""or after so many syncs."""
RETRY_MS: Final = 1000
MAX_RETRY_MS: Final = 8000
"""How long after a failed rewrite the next one begins by itself: twice as long after each, up to the longest."""

_FOR_EVER_NS: Final = 1 << 61
_IDLE: Final = 0
_OPENING: Final = 1
_WALKING: Final = 2
_SYNCING: Final = 3
_CLOSING: Final = 4


class Snapshot:
    """The records of everything that must survive a restart, a part at a time: those of the rooms, then the jobs."""

    def __init__(self, state: NodeState, *, handed_on: bool) -> None:
        self._state = state
        self._handed_on: bool = handed_on
        """Whether nothing happens any more before the file is read: see `records.stored_state`."""
        self._writer = RecordWriter(state.holders)
        self._kinds = list(state.lifecycle.journal.kinds.values())
        """The kinds of the rooms that were not begun."""
        self._others: Iterator[list[Words]] | None = None
        """The records of the kind that was begun."""
        self._walk = Walk()
        self._walk.begin()
        self.over: bool = False
        self.jobs: i64 = 0
        """Written so far."""

    def part(self, time_ns: i64) -> bytes:
        """The next records, as many as can be made in that time; of bounded length."""
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
            forgotten = job.retry_s == 0 and job.flags & DELIVERED != 0  # the log knows it no more
            if (job.state == ACTIVE or job.state == QUEUED) and not forgotten:
                stored = stored_state(job, handed_on=self._handed_on)
                self._writer.keep(made, job, stored, node_id, with_sum=with_sum)
                size += len(job.body) + _RECORD_BYTES
                self.jobs += 1
            if looked % _LOOK_JOBS == 0 and i64(stopwatch_ns()) >= until_ns:
                break
        return b"".join(made)

    def _next_others(self) -> bytes | None:
        """The next records that are not of jobs; None when there are no more."""
        while True:
            if self._others is not None:
                for records in self._others:
                    return b"".join([request(words) for words in records])
            if not self._kinds:
                self._others = None
                return None
            self._others = self._kinds.pop(0).current()


class Rewrite(DiskOwner):
    """Rewrites the append only file of one node, one time after the other."""

    def __init__(self, state: NodeState, aof: Aof) -> None:
        super().__init__()
        self._state = state
        self._aof = aof
        self._disk = state.host.disk
        self.slice_at_ms: i64 = 0
        """When the next slice is due; 0 when there is none."""
        self._step: i64 = _IDLE
        self._snapshot = Snapshot(state, handed_on=False)
        self._name = ""
        """Of the second file,"""
        self._size_bytes: i64 = 0
        """how long it is,"""
        self._unsynced_bytes: i64 = 0
        """and how much of it may be lost with the power."""
        self._work: DiskWork | None = None
        """What the disk does for this rewrite."""
        self._backlog: list[bytes] = []
        """Records for the second file that were not given to the disk yet,"""
        self._backlog_bytes: i64 = 0
        """and how many bytes they are."""
        self._rounds: i64 = 0
        """How often all was synced since the walk was over."""
        self._covers: i64 = 0
        """The last group that is in the second file, once it is closing."""
        self._again: bool = False
        """What is being put in place is out of date already: another one is to follow."""
        self._began_ns: i64 = 0
        self._began_ms: i64 = 0
        self.last_s: i64 = -1
        """How long the last rewrite took; -1 when there was none."""
        self.succeeded: i64 = 0
        """How many times the file was written anew,"""
        self.failures: i64 = 0
        """and how many failed since the last one that succeeded."""
        self._not_before_ms: i64 = 0
        """When the next one may begin by itself."""
        self.base_bytes: i64 = 0
        """Size of the append only file when it was written anew or loaded last."""

    @property
    def running(self) -> bool:
        """Whether the file is being written anew."""
        return self._step != _IDLE

    @property
    def closing(self) -> bool:
        """Whether nothing may be started with the first file, because the names are about to change."""
        return self._step == _CLOSING

    @property
    def outdated(self) -> bool:
        """Whether another rewrite begins when this one is over."""
        return self._again

    def start(self) -> None:
        """Begin, unless one is running."""
        if self._step != _IDLE:
            return
        state = self._state
        self._step = _OPENING
        self._again = False
        self._snapshot = Snapshot(state, handed_on=False)
        self._name = f"temp-rewriteaof-bg-{state.host.facts().process_id}.aof"
        self._size_bytes = 0
        self._unsynced_bytes = 0
        self._rounds = 0
        self._began_ns = i64(state.host.stopwatch_ns())
        self._began_ms = state.now_ms
        state.lifecycle.journal.on = True
        state.host.log("notice", "Rewriting the append only file in the background")
        self._begin(DiskWork(disk.OPEN, self._name))
        self.go_on()

    def restart(self) -> None:
        """What was written so far is out of date or in the wrong place: begin again, at once or when it can be."""
        if self._is_replacing():
            self._again = True
            return
        self.stop()
        self.start()

    def stop(self) -> None:
        """Give up, and remove the second file; a change of names that has begun is not stopped."""
        if self._step == _IDLE or self._is_replacing():
            return
        self._leave()
        self._disk.start(DiskWork(disk.REMOVE, self._name))
        self._state.host.log("notice", "The rewrite of the append only file was stopped")
        self._aof.rewrite_over()

    def settle(self) -> None:
        """End now, whatever was begun, and wait for the disk: the node ends."""
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
            self._aof.rewrite_over()

    def _is_replacing(self) -> bool:
        work = self._work
        return work is not None and work.verb == disk.REPLACE

    def _leave(self) -> None:
        """Be idle."""
        state = self._state
        self.slice_at_ms = 0
        self._step = _IDLE
        self._work = None
        self._backlog = []
        self._backlog_bytes = 0
        self._snapshot = Snapshot(state, handed_on=False)

    def follow(self, group: bytes) -> None:
        """A group of changes was logged."""
        if self._step != _IDLE:
            self._add(group)

    def _add(self, data: bytes) -> None:
        if data:
            self._backlog.append(data)
            self._backlog_bytes += len(data)

    def slice(self) -> None:
        """Walk on for a short time."""
        self.slice_at_ms = 0
        if self._step != _WALKING:
            return
        if self._backlog_bytes < BEHIND_BYTES:
            self._add(self._snapshot.part(SLICE_NS))
        if not self._snapshot.over:
            self._arm()
        self.go_on()

    def _arm(self) -> None:
        self.slice_at_ms = self._state.now_ms + SLICE_EVERY_MS

    # --- the disk -----------------------------------------------------------------------------------------------------

    def go_on(self) -> None:
        """Give the disk what is to be done next, if it does nothing for us."""
        while self._work is None and self._choose():
            pass

    def disk_done(self, work: DiskWork) -> None:
        """Work for this rewrite, if it still runs, is finished."""
        if work is not self._work:
            return
        self._work = None
        self._finished(work)
        self.go_on()
        self._aof.go_on()

    def _choose(self) -> bool:
        """Begin what comes next; False when there is nothing to do now."""
        if self._step == _WALKING:
            return self._choose_walking()
        if self._step == _SYNCING:  # in turns, however much comes meanwhile
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
        elif self._aof.idle:
            work = DiskWork(disk.REPLACE, self._name)
            work.other = self._aof.name
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
        work.owner = self
        self._disk.start(work)
        if work.finished:
            self._work = None
            self._finished(work)

    def _finished(self, work: DiskWork) -> None:
        """Something was done, or failed."""
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
        """The second file is there; one that is not empty was left by a process that had our number."""
        if size_bytes > 0:
            self._begin(DiskWork(disk.REMOVE, self._name))
            return
        self._step = _WALKING
        self._arm()

    def _synced(self) -> None:
        """All but what came during the sync is safe: close, unless that is much."""
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
        self._aof.replaced(self._size_bytes, self._covers)
        if not self._aof.enabled:
            self._disk.start(DiskWork(disk.CLOSE, self._aof.name))
        self._aof.rewrite_over()
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
        self._aof.rewrite_over()
        if self._again:
            self.start()

    # --- by itself ----------------------------------------------------------------------------------------------------

    def cron(self) -> None:
        """Begin when it is time for it."""
        state = self._state
        if self._step == _IDLE and state.now_ms >= self._not_before_ms and (self._aof.incomplete or self._has_grown()):
            self.start()

    def _has_grown(self) -> bool:
        """Whether the file grew as much as the configuration says."""
        config = self._state.config
        size_bytes = self._aof.size_bytes
        percentage: i64 = config.auto_aof_rewrite_percentage
        if percentage <= 0 or not self._aof.enabled or size_bytes <= config.auto_aof_rewrite_min_size:
            return False
        base_bytes: i64 = max(self.base_bytes, 1)
        return size_bytes * 100 // base_bytes - 100 >= percentage

    # --- the end of the node ------------------------------------------------------------------------------------------

    def perform(self, *, handed_on: bool) -> str:
        """Rewrite at once, waiting for the disk. Returns what went wrong; then the old file is as it was."""
        state = self._state
        self.settle()
        name = f"temp-rewriteaof-{state.host.facts().process_id}.aof"
        snapshot = Snapshot(state, handed_on=handed_on)
        mark = RestartMark(state, self._aof.name) if handed_on and state.config.aof_restart_mark else None
        size_bytes: i64 = 0
        error = self._perform(DiskWork(disk.REMOVE, name)) or self._perform(DiskWork(disk.OPEN, name))
        while not error and not snapshot.over:
            work = DiskWork(disk.APPEND, name)
            part = snapshot.part(_FOR_EVER_NS)
            if part:
                work.data = [part]
                size_bytes += len(part)
                error = self._perform(work)
        if not error and mark is not None:
            work = DiskWork(disk.APPEND, name)
            work.data = [mark.seal()]
            size_bytes += len(work.data[0])
            error = self._perform(work) or mark.prepare(size_bytes)
        if not error:
            work = DiskWork(disk.REPLACE, name)
            work.other = self._aof.name
            error = self._perform(work)
        if error:
            self._disk.perform(DiskWork(disk.REMOVE, name))
            if mark is not None:
                mark.give_up()
            return error
        self.succeeded += 1
        self.base_bytes = size_bytes
        state.host.log("notice", f"The append only file was rewritten: {snapshot.jobs} jobs, {size_bytes} bytes")
        self._aof.replaced(size_bytes, state.ready.logged)
        if not self._aof.enabled:
            self._disk.start(DiskWork(disk.CLOSE, self._aof.name))
        return self._leave_mark(mark) if mark is not None else ""

    def _leave_mark(self, mark: RestartMark) -> str:
        """Put the mark beside the file. Returns what went wrong; then the node goes on.

        It has to write a file for itself then, and one that keeps none must not leave this one behind.
        """
        error = mark.leave()
        if error:
            mark.give_up()
            if self._aof.enabled:
                self.start()
            else:
                self._disk.start(DiskWork(disk.REMOVE, self._aof.name))
        return error

    def _perform(self, work: DiskWork) -> str:
        """Have something done, and wait for it. Returns what went wrong."""
        self._disk.perform(work)
        return f"can't {VERB_NAMES[work.verb]} {work.name}: {work.error}" if work.error else ""

    # --- in figures ---------------------------------------------------------------------------------------------------

    def status(self) -> Fields:
        """How far it is, for INFO."""
        return [
            ("aof_rewrite_in_progress", int(self.running)),
            ("aof_rewrite_scheduled", 0),
            ("aof_last_rewrite_time_sec", int(self.last_s)),
            ("aof_current_rewrite_time_sec", self.current_s),
            ("aof_last_bgrewrite_status", "err" if self.failures > 0 else "ok"),
        ]

    @property
    def current_s(self) -> int:
        """For how long it has been running; -1 while it is not."""
        return int(self._state.now_ms - self._began_ms) // 1000 if self.running else -1

    @property
    def buffer_bytes(self) -> int:
        """What waits for the disk, or is being written."""
        work = self._work
        writing = sum(map(len, work.data)) if work is not None and work.verb == disk.APPEND else 0
        return int(self._backlog_bytes) + writing
