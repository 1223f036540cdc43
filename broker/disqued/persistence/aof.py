"""The append only file while the node runs: what is written when, what waits for it, and what happens when it can not.

Once per turn of the event loop the changes of the turn become one group of records (`turn`), which is given to the disk
before any output that depends on it leaves (`core.output.barrier`). When a group counts as safe is the policy,
`appendfsync`:

- `no`, `everysec`: when it was written, so that it survives the end of this process. With `everysec` the file is
  synced as well, a second after the last sync began, so that it survives a loss of power then.
- `always`: when it was synced. Groups that come while a sync runs are written meanwhile, and the next sync is for all.

Groups are numbered by `ready.logged`. Those up to `_appended` were written, those up to `_synced` synced; behind them
follow the ones that are being written, if any, and then those that wait: together all up to `ready.logged`.

**When the disk fails**, no new jobs are taken (`state.refusal`), nor copies, and replies that depend on the file wait:

- What could not be written is tried again each second, in order; the disk leaves nothing of a failed write in the file.
- After a failed sync nobody knows what is in the file: systems take for written what they could not write. It is
  written anew from memory, and until that is done nothing becomes safe.
- While a write or a sync takes more than two seconds it is as if it had failed. So a loss of power takes with
  `everysec` what came in a second, and until the sync was over, or two more seconds.

What waits in memory then is bounded: only acknowledgements, expiry and the like go on, with one short record per job
that is here, and jobs that other nodes give away (`YOURJOBS`), which count as jobs do.
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
from disqued.persistence.refusal import NOT_THERE_YET, SLOW, not_synced, not_written
from disqued.persistence.rewrite import Rewrite

if TYPE_CHECKING:
    from disqued.core.telemetry.fields import Fields

OFF: Final = 0
WAIT_REWRITE: Final = 1
"""Switched on while the node runs: the file is complete when it was written anew for the first time. Until then it
promises nothing, and nothing waits for it."""
ON: Final = 2
STATUS_NAMES: Final = ("off", "wait-rewrite", "on")

SYNC_MS: Final = 1000 - NEAR_MS
"""From the beginning of one sync to the next with `everysec`; an alarm is late by up to NEAR_MS."""
RETRY_MS: Final = 1000
SLOW_MS: Final = 2000
PROBE_BYTES: Final = 1 << 20
"""About so much is written at first when writing failed before, and the rest when that went well."""

_COMPLETE: Final = -1

SYNC_NEVER: Final = 0
SYNC_EVERY_SECOND: Final = 1
SYNC_ALWAYS: Final = 2
_SYNC_POLICIES: Final = {"no": SYNC_NEVER, "everysec": SYNC_EVERY_SECOND, "always": SYNC_ALWAYS}


class NextSync(Alarm):
    """It is time to sync."""

    def __init__(self, aof: Aof) -> None:
        super().__init__()
        self._aof = aof

    def ring(self, _state: NodeState) -> None:
        """Do."""
        self._aof.go_on()


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
        """While it is loaded."""
        self.damaged_records: i64 = 0
        """Places of damage that were left out when it was loaded."""
        self._waiting: list[bytes] = []
        """Groups that were not given to the disk yet,"""
        self._waiting_ms: i64 = 0
        """when the first of them came,"""
        self.buffer_bytes: i64 = 0
        """and how much they are together with what is being written."""
        self._append: DiskWork | None = None
        self._append_ms: i64 = 0
        """When it began;"""
        self._append_to: i64 = 0
        """the last group in what is being written,"""
        self._appended: i64 = 0
        """in what was written,"""
        self._sync: DiskWork | None = None
        self._sync_ms: i64 = state.now_ms
        """(when the last sync began)"""
        self._sync_to: i64 = 0
        """in what is being synced,"""
        self._synced: i64 = 0
        """and in what was synced."""
        self._next_sync = NextSync(self)
        self._written_bytes: i64 = 0
        """All that was ever written,"""
        self._sync_to_bytes: i64 = 0
        self._synced_bytes: i64 = 0
        """and synced."""
        self._failure = ""
        """Why it can not be written; empty while it can,"""
        self._failure_is_full: bool = False
        self._failed_ms: i64 = 0
        """and when that was tried last, until it is to be tried again."""
        self._sync_failure = ""
        """Why the file can not be trusted; empty while it can."""
        self._wanted: i64 = _COMPLETE
        """The file only counts when it was written anew with all groups up to this one; _COMPLETE while it counts."""
        self._wanted_ms: i64 = 0
        """Since when."""
        self._told = ""
        """Why no new jobs are taken, as the log was told."""
        self._last_sync_ms: i64 = 0
        """How long the last sync took."""
        self.delayed_syncs: i64 = 0
        """How many took too long,"""
        self._is_delayed: bool = False
        """and whether the one that runs is among them."""

    # --- what others look at ------------------------------------------------------------------------------------------

    @property
    def enabled(self) -> bool:
        """Whether changes are logged."""
        return self.status != OFF

    @property
    def incomplete(self) -> bool:
        """Whether the file has to be written anew before it counts."""
        return self.status == WAIT_REWRITE or (self.status == ON and self._wanted != _COMPLETE)

    @property
    def idle(self) -> bool:
        """Whether the disk does nothing with the file."""
        return self._append is None and self._sync is None

    @property
    def unsynced_bytes(self) -> i64:
        """Records that a loss of power would take."""
        return self._written_bytes - self._synced_bytes + self.buffer_bytes

    # --- beginning ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to load the file, if there is to be one; `loaded` follows. Without one the node must not serve."""
        loader = open_log(self, self._state)
        if loader is not None:
            self.loader = loader
            loader.begin()

    def loaded(self, size_bytes: i64, *, rewrite: bool, counts: bool) -> None:
        """All that is in the file is in memory: log from now on, and write it anew if `rewrite`.

        Unless it `counts`, what is written behind its end may not be found there.
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
        if size_bytes > 0:  # nobody knows whether the last run synced all of it: it counts as a group, to be synced now
            state.ready.logged += 1
            self._appended = state.ready.logged
            self._sync_ms = state.now_ms - SYNC_MS
        if not counts:
            self._wanted = state.ready.logged
            self._wanted_ms = state.now_ms
        if rewrite:
            self.rewrite.start()
        self.go_on()

    def switch(self) -> None:
        """Begin to log, stop, or count as safe what the sync policy says, as the configuration says now."""
        state = self._state
        self._sync_policy = _SYNC_POLICIES[state.config.appendfsync]
        if state.config.appendonly and not self.enabled:
            self.status = WAIT_REWRITE
            state.lifecycle.journal.on = True
            self.rewrite.restart()
        elif self.enabled and not state.config.appendonly:
            self.turn()
            self._stop()
        self.go_on()

    def _stop(self) -> None:
        """Log no more. What waits is written if that works, and nobody waits for it: so a node gets rid of its disk."""
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
        """Give what changed to the disk, before anything else that comes of it is carried out."""
        state = self._state
        journal = state.lifecycle.journal
        if journal.changes:
            group = self._records.group(journal, state.view.node_id, with_sum=state.config.aof_checksums)
            if group:
                self._take(group)
        self.go_on()

    def _take(self, group: bytes) -> None:
        """One more group."""
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
        """The working directory is another one: the file is written anew there."""
        if self.status != OFF or self.rewrite.running:
            self.rewrite.restart()

    def drop_all(self) -> None:
        """All jobs were dropped at once, and no record says so: the file is written anew, and does not count before."""
        self._state.lifecycle.journal.changes.clear()
        if self.status == ON:
            self._take(b"")
            self._wanted = self._state.ready.logged
            self._wanted_ms = self._state.now_ms
        if self.status != OFF or self.rewrite.running:
            self.rewrite.restart()

    # --- writing and syncing ------------------------------------------------------------------------------------------

    def go_on(self) -> None:
        """Start what is to be done next, and say what is safe."""
        ready = self._state.ready
        rewrite = self.rewrite
        if self.status == ON:
            if not rewrite.closing:
                self._sync_if_due()  # before more is written, which a sync would wait for
                while self._waiting and self._append is None and self._failed_ms == 0:
                    self._write()
                self._sync_if_due()
            if self._wanted == _COMPLETE:
                self._promise(self._synced if self._is_strict() else self._appended)
        else:
            self._promise(ready.logged)
        if rewrite.running:
            rewrite.go_on()

    def _promise(self, group: i64) -> None:
        """All groups up to this one are where `appendfsync` wants them."""
        state = self._state
        grew = group > state.ready.safe
        state.ready.safe = group
        if grew:
            state.events.persisted()

    def _is_strict(self) -> bool:
        """Whether only what was synced is safe."""
        return self._sync_policy == SYNC_ALWAYS and not self._is_spared()

    def _is_spared(self) -> bool:
        """Whether syncs are left out because of a rewrite."""
        return self.rewrite.running and self._state.config.no_appendfsync_on_rewrite

    def _write(self) -> None:
        """Append what waits, or only the beginning of it to see whether that works again."""
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
        if state.refusal:
            self._judge()

    def _forget_covered(self) -> None:
        """Of the groups that wait, forget those that are in the file already."""
        surplus: i64 = len(self._waiting) - (self._state.ready.logged - self._appended)
        if surplus > 0:
            for group in self._waiting[:surplus]:
                self.buffer_bytes -= len(group)
            self._waiting = self._waiting[surplus:]

    def _sync_if_due(self) -> None:
        """Sync what was written, if the policy wants it now; otherwise see that it is done later."""
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
        if state.refusal:
            self._judge()

    def disk_done(self, work: DiskWork) -> None:
        """Groups were appended, or the file was synced."""
        if work is self._append:
            self._append_done(work)
        elif work is self._sync:
            self._sync_done(work)
        else:
            return
        self.go_on()

    def cron(self) -> None:
        """Regular duties: try again what failed, see whether something takes too long, write the file anew."""
        state = self._state
        if self.status == OFF and not self.rewrite.running:
            state.ready.unwritten_bytes = 0
            return
        if self._failed_ms > 0 and state.now_ms - self._failed_ms >= RETRY_MS:
            self._failed_ms = 0
        if self.status == ON:
            self._judge()
        self.rewrite.cron()
        self.go_on()
        state.ready.unwritten_bytes = self.buffer_bytes + self.rewrite.buffer_bytes

    # --- being written anew -------------------------------------------------------------------------------------------

    def replaced(self, size_bytes: i64, covers: i64) -> None:
        """The file was written anew, synced, and has all groups up to `covers`."""
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
        """A rewrite succeeded, after `replaced`, or ended otherwise."""
        if self.status != ON:
            self._forget_waiting()
        self._state.lifecycle.journal.on = self.enabled
        self.go_on()

    # --- refusing -----------------------------------------------------------------------------------------------------

    def _judge(self) -> None:
        """Take new jobs or not, and tell the log when that changes."""
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
        if why == self._told:
            return
        self._told = why
        if why:
            state.refusal = "MISCONF " + why
            state.host.log("warning", f"No new jobs are taken. {why}")
        else:
            state.refusal = ""
            state.host.log("notice", "New jobs are taken again: the disk does what it should, or is not needed")

    def _is_stuck(self) -> bool:
        """Whether a write takes too long, or something has waited for too long to be written."""
        now_ms = self._state.now_ms
        if self._append is not None:
            return now_ms - self._append_ms > SLOW_MS
        return len(self._waiting) > 0 and now_ms - self._waiting_ms > SLOW_MS

    # --- the end of the node ------------------------------------------------------------------------------------------

    def end(self, *, rewrite: bool) -> str:
        """The node ends: see that all is on disk, in a file written anew if `rewrite`. Returns what went wrong."""
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
        self.go_on()
        return error

    def _write_all(self) -> str:
        """Write and sync what is left, waiting for the disk. Returns what went wrong."""
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
        """Sync what was written, behind all that was started, waiting for the disk. Each failure is told once only."""
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
        """A write took so long, by what else went on with the file."""
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
        """What INFO shows: the fields of the original, then ours."""
        rewrite = self.rewrite
        fields: Fields = [
            ("loading", int(self._state.loading)),
            ("aof_enabled", int(self.enabled)),  # not while it is loaded
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
                ("aof_refusing", self._told),
            ]
        if self.loader is not None:
            fields += self.loader.status()
        return fields
