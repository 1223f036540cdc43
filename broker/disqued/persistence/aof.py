"""The append-only file while the node runs: when it is written and synced, what waits for it, and what a failure does.

At the end of each turn of the event loop the changes of the turn become one group of records (`turn`). The disk gets
the group before any output that depends on it leaves (`core.output.barrier`). The sync policy, `appendfsync`, says when
a group is safe:

- `no`, `everysec`: when it was written, so that it survives the end of this process. With `everysec` the file is also
  synced, one second after the last sync began; from then on it survives a power loss.
- `always`: when it was synced. Groups that arrive during a sync are written meanwhile, and share the next sync.

Groups are numbered by `ready.logged`. Groups up to `_appended` were written, those up to `_synced` were synced. After
them come the groups that are being written, if any, and then the waiting ones, up to `ready.logged`.

**While the disk fails**, the node refuses new jobs and copies (`state.write_refusal`), and replies that depend on the
file wait:

- A failed write is retried each second, in order; the disk leaves nothing of a failed write in the file.
- After a failed sync the content of the file is unknown, because systems take unwritten pages for written ones. The
  file is rewritten from memory, and nothing becomes safe until that is done.
- A write or sync that takes longer than two seconds counts as failed until it is done. So with `everysec`, a power loss
  takes at most the changes of one second, plus the time of the sync, or two more seconds.

The memory for waiting records is bounded: only acknowledgements, expiry and similar changes continue, with one short
record per job on this node, and jobs that other nodes transfer (`YOURJOBS`), which count as jobs do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.core.host import disk
from disqued.core.host.disk import DiskOwner, DiskWork
from disqued.core.runtime.state import NodeState
from disqued.core.timers.alarm import Alarm
from disqued.core.timers.wheel import NEAR_MS
from disqued.persistence.counters import FSYNC_DURATION
from disqued.persistence.load import Loader, open_log
from disqued.persistence.recordwriter import RecordWriter
from disqued.persistence.refusal import NOT_THERE_YET, SLOW, WriteRefusal, not_synced, not_written
from disqued.persistence.rewrite import Rewrite

if TYPE_CHECKING:
    from disqued.core.telemetry.fields import Fields

OFF: Final = 0
WAIT_REWRITE: Final = 1
"""Switched on while the node runs: the file is complete after its first rewrite. Until then no output waits for it."""
ON: Final = 2
STATUS_NAMES: Final = ("off", "wait-rewrite", "on")

SYNC_MS: Final = 1000 - NEAR_MS
"""With `everysec`, the time from the start of one sync to the next; an alarm is late by up to NEAR_MS."""
RETRY_MS: Final = 1000
SLOW_MS: Final = 2000
PROBE_BYTES: Final = 1 << 20
"""After a failed write, about this much is written first, and the rest once that succeeds."""

_COMPLETE: Final = -1

SYNC_NEVER: Final = 0
SYNC_EVERY_SECOND: Final = 1
SYNC_ALWAYS: Final = 2
_SYNC_POLICIES: Final = {"no": SYNC_NEVER, "everysec": SYNC_EVERY_SECOND, "always": SYNC_ALWAYS}


class NextSync(Alarm):
    """Rings when the next sync is due."""

    def __init__(self, aof: Aof) -> None:
        super().__init__()
        self._aof = aof

    def ring(self, _state: NodeState) -> None:
        """Start the sync."""
        self._aof.advance()


class Aof(DiskOwner):
    """The append only file of one node."""

    def __init__(self, state: NodeState) -> None:
        super().__init__()
        self._state = state
        self._disk = state.host.disk
        self.name: str = state.config.appendfilename
        self._sync_policy: i64 = _SYNC_POLICIES[state.config.appendfsync]
        self.status: i64 = OFF
        self.size_bytes: i64 = 0
        self._records = RecordWriter(state.holders)
        self.rewrite = Rewrite(state, self)
        self.loader: Loader | None = None
        """Loads the file; None when that is done."""
        self.damaged_records: i64 = 0
        """The number of damaged places that loading skipped."""
        self._waiting: list[bytes] = []
        """Groups that were not yet given to the disk."""
        self._waiting_ms: i64 = 0
        """When the first of the waiting groups arrived."""
        self.buffer_bytes: i64 = 0
        """The size of the waiting groups and of those being written."""
        self._append: DiskWork | None = None
        self._append_ms: i64 = 0
        """When the append began."""
        self._append_to: i64 = 0
        """The last group that is being written."""
        self._appended: i64 = 0
        """The last group that was written."""
        self._sync: DiskWork | None = None
        self._sync_ms: i64 = state.now_ms
        """When the last sync began."""
        self._sync_to: i64 = 0
        """The last group that is being synced."""
        self._synced: i64 = 0
        """The last group that was synced."""
        self._next_sync = NextSync(self)
        self._written_bytes: i64 = 0
        """The number of bytes ever written."""
        self._sync_to_bytes: i64 = 0
        """How many of them the running sync covers."""
        self._synced_bytes: i64 = 0
        """How many of them were synced."""
        self._failure = ""
        """The error of the last write; empty if it succeeded."""
        self._failure_is_full: bool = False
        """Whether the disk was full."""
        self._failed_ms: i64 = 0
        """When the last write failed; 0 once it may be retried."""
        self._sync_failure = ""
        """The error of the last sync, after which the content of the file is unknown; empty if there was none."""
        self._wanted: i64 = _COMPLETE
        """The file counts only after a rewrite that has all groups up to this one; _COMPLETE while it counts."""
        self._wanted_ms: i64 = 0
        """Since when the file does not count."""
        self._refusal = WriteRefusal(state)
        self._last_sync_ms: i64 = 0
        """The duration of the last sync."""
        self.delayed_syncs: i64 = 0
        """The number of syncs that took too long."""
        self._is_delayed: bool = False
        """Whether the running sync is one of them."""

    # --- what others look at ------------------------------------------------------------------------------------------

    @property
    def enabled(self) -> bool:
        """Whether changes are logged."""
        return self.status != OFF

    @property
    def incomplete(self) -> bool:
        """Whether the file counts only after a rewrite."""
        return self.status == WAIT_REWRITE or (self.status == ON and self._wanted != _COMPLETE)

    @property
    def idle(self) -> bool:
        """Whether no disk work on the file is under way."""
        return self._append is None and self._sync is None

    @property
    def unsynced_bytes(self) -> i64:
        """The size of the records that a power loss would take."""
        return self._written_bytes - self._synced_bytes + self.buffer_bytes

    # --- beginning ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to load the file if there must be one; `loaded` follows. The node must not serve before."""
        loader = open_log(self, self._state)
        if loader is not None:
            self.loader = loader
            loader.begin()

    def loaded(self, size_bytes: i64, *, rewrite: bool, counts: bool) -> None:
        """Begin to log, since everything in the file is in memory; rewrite the file first if `rewrite`.

        Unless it `counts`, records that are appended to it may not be found there.
        """
        state = self._state
        loader = self.loader
        if loader is not None:
            self.damaged_records += loader.damaged
            self.loader = None
        if not state.config.appendonly:
            return
        self.size_bytes = size_bytes
        self.rewrite.base_bytes = size_bytes
        self._appended = state.ready.logged
        self._synced = state.ready.logged
        self.status = ON
        state.lifecycle.journal.on = True
        if size_bytes > 0:  # the last run may not have synced all of it: it counts as one group that must be synced now
            state.ready.logged += 1
            self._appended = state.ready.logged
            self._sync_ms = state.now_ms - SYNC_MS
        if not counts:
            self._wanted = state.ready.logged
            self._wanted_ms = state.now_ms
        if rewrite:
            self.rewrite.start()
        self.advance()

    def switch(self) -> None:
        """Begin or stop logging, or apply the sync policy, after a change of the configuration."""
        state = self._state
        self._sync_policy = _SYNC_POLICIES[state.config.appendfsync]
        if state.config.appendonly and not self.enabled:
            self.status = WAIT_REWRITE
            state.lifecycle.journal.on = True
            self.rewrite.restart()
        elif self.enabled and not state.config.appendonly:
            self.turn()
            self._stop()
        self.advance()

    def _stop(self) -> None:
        """Stop logging. Waiting groups are written if possible, but no reply waits: the disk may be failing."""
        self.status = OFF
        self.rewrite.stop()
        if self._waiting and not self._failure:
            work = DiskWork(disk.APPEND, self.name)
            work.data = self._waiting
            self._disk.start(work)
        self._disk.start(DiskWork(disk.SYNC, self.name))
        self._disk.start(DiskWork(disk.CLOSE, self.name))
        self._state.lifecycle.timers.disarm(self._next_sync)
        self._append = None
        self._sync = None
        self._forget_waiting()
        self._failure = ""
        self._failed_ms = 0
        self._sync_failure = ""
        self._is_delayed = False
        self._wanted = _COMPLETE
        self._state.lifecycle.journal.on = self.rewrite.running
        self._judge()

    def _forget_waiting(self) -> None:
        self._waiting = []
        self.buffer_bytes = 0

    # --- what changed -------------------------------------------------------------------------------------------------

    def turn(self) -> None:
        """Give the changes of the turn to the disk, before any output that depends on them."""
        state = self._state
        journal = state.lifecycle.journal
        if journal.changes:
            group = self._records.group(journal, state.view.node_id, with_sum=state.config.aof_checksums)
            if group:
                self._take(group)
        self.advance()

    def _take(self, group: bytes) -> None:
        """Log one more group."""
        state = self._state
        rewrite = self.rewrite
        state.ready.logged += 1
        if rewrite.closing:
            self._wait(group)
            return
        if rewrite.running:
            rewrite.follow(group)
        if self.status == ON:
            self._wait(group)

    def _wait(self, group: bytes) -> None:
        if not self._waiting:
            self._waiting_ms = self._state.now_ms
        self._waiting.append(group)
        self.buffer_bytes += len(group)

    def move(self) -> None:
        """Rewrite the file in the new working directory."""
        if self.status != OFF or self.rewrite.running:
            self.rewrite.restart()

    def drop_all(self) -> None:
        """Rewrite the file after all jobs were dropped at once without records; until then it does not count."""
        self._state.lifecycle.journal.changes.clear()
        if self.status == ON:
            self._take(b"")
            self._wanted = self._state.ready.logged
            self._wanted_ms = self._state.now_ms
        if self.status != OFF or self.rewrite.running:
            self.rewrite.restart()

    # --- writing and syncing ------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """Start the next disk work, and publish which groups are safe."""
        ready = self._state.ready
        rewrite = self.rewrite
        if self.status == ON:
            if not rewrite.closing:
                self._sync_if_due()  # before more is written, because a sync would wait for it
                while self._waiting and self._append is None and self._failed_ms == 0:
                    self._write()
                self._sync_if_due()
            if self._wanted == _COMPLETE:
                self._promise(self._synced if self._is_strict() else self._appended)
        else:
            self._promise(ready.logged)
        if rewrite.running:
            rewrite.advance()

    def _promise(self, group: i64) -> None:
        """Publish that all groups up to this one are safe."""
        state = self._state
        grew = group > state.ready.safe
        state.ready.safe = group
        if grew:
            state.events.persisted()

    def _is_strict(self) -> bool:
        """Whether only synced groups are safe."""
        return self._sync_policy == SYNC_ALWAYS and not self._is_spared()

    def _is_spared(self) -> bool:
        """Whether syncs are skipped during a rewrite (`no-appendfsync-on-rewrite`)."""
        return self.rewrite.running and self._state.config.no_appendfsync_on_rewrite

    def _write(self) -> None:
        """Append the waiting groups; after a failure only the first of them, as a probe."""
        state = self._state
        waiting = self._waiting
        count: i64 = len(waiting)
        if self._failure:
            count = 0
            size: i64 = 0
            while count < len(waiting) and size < PROBE_BYTES:
                size += len(waiting[count])
                count += 1
        work = DiskWork(disk.APPEND, self.name, self)
        work.data = waiting[:count]
        self._waiting = waiting[count:]
        self._append = work
        self._append_ms = state.now_ms
        self._append_to = self._appended + count
        self._disk.start(work)
        if work.finished:
            self._append_done(work)

    def _append_done(self, work: DiskWork) -> None:
        state = self._state
        self._append = None
        self._note_write(max(work.spent_ms, state.now_ms - self._append_ms))
        if work.error:
            self._failure = work.error
            self._failure_is_full = work.full
            self._failed_ms = state.now_ms
            self._waiting = work.data + self._waiting
            self._waiting_ms = self._append_ms
            self._forget_covered()
            self._judge()
            return
        size: i64 = 0
        for group in work.data:
            size += len(group)
        self.size_bytes += size
        self.buffer_bytes -= size
        self._written_bytes += size
        self._appended = max(self._append_to, self._appended)
        self._waiting_ms = state.now_ms
        self._failure = ""
        if state.write_refusal:
            self._judge()

    def _forget_covered(self) -> None:
        """Drop the waiting groups that are already in the file."""
        surplus: i64 = len(self._waiting) - (self._state.ready.logged - self._appended)
        if surplus > 0:
            for group in self._waiting[:surplus]:
                self.buffer_bytes -= len(group)
            self._waiting = self._waiting[surplus:]

    def _sync_if_due(self) -> None:
        """Sync written groups if the policy says so now; otherwise arm an alarm for it."""
        if self._sync is not None or self._synced >= self._appended:
            return
        state = self._state
        policy = self._sync_policy
        if policy == SYNC_NEVER or self._sync_failure or self._is_spared():
            return
        if policy == SYNC_EVERY_SECOND and state.now_ms - self._sync_ms < SYNC_MS:
            if self._next_sync.awake_ms == 0:
                state.lifecycle.timers.arm(self._next_sync, self._sync_ms + SYNC_MS)
            return
        work = DiskWork(disk.SYNC, self.name, self)
        self._sync = work
        self._sync_to = self._appended
        self._sync_to_bytes = self._written_bytes
        self._sync_ms = state.now_ms
        self._disk.start(work)
        if work.finished:
            self._sync_done(work)

    def _sync_done(self, work: DiskWork) -> None:
        state = self._state
        self._sync = None
        self._is_delayed = False
        self._last_sync_ms = state.now_ms - self._sync_ms
        state.counters.observe(FSYNC_DURATION, self._last_sync_ms)
        if self._sync_policy == SYNC_ALWAYS:
            self._note_latency(b"aof-fsync-always", self._last_sync_ms)
        if not work.error:
            self._synced = max(self._sync_to, self._synced)
            self._synced_bytes = max(self._sync_to_bytes, self._synced_bytes)
        elif self._synced < self._sync_to:
            self._sync_failure = work.error
            if self._wanted == _COMPLETE:
                self._wanted = 0
                self._wanted_ms = state.now_ms
            self._judge()
            self.rewrite.cron()
        if state.write_refusal:
            self._judge()

    def disk_done(self, work: DiskWork) -> None:
        """Continue after an append or a sync."""
        if work is self._append:
            self._append_done(work)
        elif work is self._sync:
            self._sync_done(work)
        else:
            return
        self.advance()

    def cron(self) -> None:
        """Retry a failed write, detect slow disk work, and start a rewrite if one is due."""
        state = self._state
        if self.status == OFF and not self.rewrite.running:
            state.ready.unwritten_bytes = 0
            return
        if self._failed_ms > 0 and state.now_ms - self._failed_ms >= RETRY_MS:
            self._failed_ms = 0
        if self.status == ON:
            self._judge()
        self.rewrite.cron()
        self.advance()
        state.ready.unwritten_bytes = self.buffer_bytes + self.rewrite.buffer_bytes

    # --- after a rewrite ----------------------------------------------------------------------------------------------

    def replaced(self, size_bytes: i64, covers: i64) -> None:
        """Continue with the rewritten file, which is synced and has all groups up to `covers`."""
        state = self._state
        if self.status == OFF or (self.status == WAIT_REWRITE and self.rewrite.outdated):
            return
        self.status = ON
        self.size_bytes = size_bytes
        self._appended = max(covers, self._appended)
        self._synced = max(covers, self._synced)
        self._synced_bytes = self._written_bytes
        self._sync_ms = state.now_ms
        self._forget_covered()
        self._waiting_ms = state.now_ms
        self._failure = ""
        self._failed_ms = 0
        self._sync_failure = ""
        if self._wanted <= covers:
            self._wanted = _COMPLETE
        self._judge()

    def rewrite_over(self) -> None:
        """Continue after a rewrite: after `replaced` if it succeeded, or after a failure."""
        if self.status != ON:
            self._forget_waiting()
        self._state.lifecycle.journal.on = self.enabled
        self.advance()

    # --- write refusal ------------------------------------------------------------------------------------------------

    def _judge(self) -> None:
        """Decide whether to refuse new jobs, and log a change of that."""
        state = self._state
        delayed = self._sync is not None and state.now_ms - self._sync_ms > SLOW_MS
        if delayed and not self._is_delayed:
            self._is_delayed = True
            self.delayed_syncs += 1
        why = ""
        if self._failure:
            why = not_written(self._failure, is_full=self._failure_is_full)
        elif self._sync_failure:
            why = not_synced(self._sync_failure)
        elif self._wanted != _COMPLETE and state.now_ms - self._wanted_ms > SLOW_MS:
            why = NOT_THERE_YET
        elif delayed or self._is_stuck():
            why = SLOW
        self._refusal.set(why)

    def _is_stuck(self) -> bool:
        """Whether a write takes too long, or a group has waited too long for it."""
        now_ms = self._state.now_ms
        if self._append is not None:
            return now_ms - self._append_ms > SLOW_MS
        return len(self._waiting) > 0 and now_ms - self._waiting_ms > SLOW_MS

    # --- the end of the node ------------------------------------------------------------------------------------------

    def end(self, *, rewrite: bool) -> str:
        """Put everything on disk at shutdown, in a rewritten file if `rewrite`. Returns the error, empty on success."""
        if self._state.loading:
            return ""  # the file is as it was
        if self.status == WAIT_REWRITE and not rewrite:
            return "the append only file is still being written for the first time"
        self.turn()
        self.rewrite.settle()
        if rewrite or self.incomplete:
            error = self.rewrite.perform(handed_on=rewrite)
        elif self.status == ON:
            error = self._write_all()
        else:
            error = ""
        self.advance()
        return error

    def _write_all(self) -> str:
        """Write and sync the rest, and wait for the disk. Returns the error, empty on success."""
        self._sync_all()
        if self._waiting:
            self._append_ms = self._state.now_ms
            self._append_to = self._state.ready.logged
            work = DiskWork(disk.APPEND, self.name)
            work.data = self._waiting
            self._waiting = []
            self._disk.perform(work)
            self._append_done(work)
            self._sync_all()
        if self._failure:
            return f"can't write to {self.name}: {self._failure}"
        return f"can't sync {self.name}: {self._sync_failure}" if self._sync_failure else ""

    def _sync_all(self) -> None:
        """Sync the file after all work that was started, and wait for the disk. The disk reports each failure once."""
        work = DiskWork(disk.SYNC, self.name)
        self._sync_ms = self._state.now_ms
        self._disk.perform(work)
        if self._append is not None:
            self._append_done(self._append)
        if self._sync is not None:
            self._sync_done(self._sync)
        self._sync_to = self._appended
        self._sync_to_bytes = self._written_bytes
        self._sync_done(work)

    # --- in figures ---------------------------------------------------------------------------------------------------

    def _note_write(self, spent_ms: i64) -> None:
        """Count the latency of a write, by what else was under way with the file."""
        if spent_ms == 0:
            return
        self._note_latency(b"aof-write", spent_ms)
        if self._sync is not None:
            self._note_latency(b"aof-write-pending-fsync", spent_ms)
        elif self.rewrite.running:
            self._note_latency(b"aof-write-active-child", spent_ms)
        else:
            self._note_latency(b"aof-write-alone", spent_ms)

    def _note_latency(self, event: bytes, spent_ms: i64) -> None:
        state = self._state
        if 0 < state.config.latency_monitor_threshold <= spent_ms:
            state.monitoring.latency.add(event, state.host.wall_us() // 1_000_000, spent_ms)

    def status_fields(self) -> Fields:
        """Return the fields for INFO: those of the original first."""
        rewrite = self.rewrite
        fields: Fields = [
            ("loading", int(self._state.loading)),
            ("aof_enabled", int(self.enabled)),  # 0 while the file is loaded
            ("aof_state", STATUS_NAMES[self.status]),
            *rewrite.status(),
            ("aof_last_write_status", "err" if self._failure or self._sync_failure else "ok"),
        ]
        if self.enabled:
            fields += [
                ("aof_current_size", int(self.size_bytes)),
                ("aof_base_size", int(rewrite.base_bytes)),
                ("aof_pending_rewrite", 0),
                ("aof_buffer_length", int(self.buffer_bytes)),
                ("aof_rewrite_buffer_length", rewrite.buffer_bytes),
                ("aof_pending_bio_fsync", int(self._sync is not None)),
                ("aof_delayed_fsync", int(self.delayed_syncs)),
                ("aof_damaged_records", int(self.damaged_records)),
                ("aof_last_fsync_ms", int(self._last_sync_ms)),
                ("aof_unsynced_bytes", int(self.unsynced_bytes)),
                ("aof_refusing", self._refusal.why),
            ]
        if self.loader is not None:
            fields += self.loader.status()
        return fields
