"""The append-only file while the node runs: when it is written and synced, what waits for it, and what a failure does.

At the end of each turn of the event loop the changes of the turn become one group of records (`aof`). The disk gets the
group before any output that depends on it leaves (`core.output.barrier`). The sync policy, `appendfsync`, says when a
group is safe:

- `no`, `everysec`: when it was written, so that it survives the end of this process. With `everysec` the file is also
  synced, one second after the last sync began; from then on it survives a power loss.
- `always`: when it was synced. Groups that arrive during a sync are written meanwhile, and share the next sync.

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
from disqued.core.timers.alarm import Alarm
from disqued.core.timers.wheel import NEAR_MS
from disqued.persistence.counters import FSYNC_DURATION
from disqued.persistence.filesync import FileSync
from disqued.persistence.groups import Groups
from disqued.persistence.refusal import NOT_THERE_YET, SLOW, WriteRefusal, not_synced, not_written

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState

OFF: Final = 0
WAIT_REWRITE: Final = 1
"""Switched on while the node runs: the file is complete after its first rewrite. Until then no output waits for it."""
ON: Final = 2

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


class LogFile:
    """The append-only file of one node. Its disk work belongs to `owner`, which passes finished work to `done`."""

    def __init__(self, state: NodeState, owner: DiskOwner, next_sync: Alarm) -> None:
        self._state = state
        self._owner = owner
        self._disk = state.host.disk
        self._next_sync = next_sync
        """Rings when the next sync is due."""
        self.name: str = state.config.appendfilename
        self.status: i64 = OFF
        self.size_bytes: i64 = 0
        self.groups = Groups()
        self.sync = FileSync(state.now_ms)
        self.refusal = WriteRefusal(state)
        self._sync_policy: i64 = _SYNC_POLICIES[state.config.appendfsync]
        self._strict_from: i64 = 0
        self._strict_to: i64 = 0
        """The first and the last of the unsynced groups that must be synced whatever the policy; equal to or below
        `sync.synced` if there are none."""
        self._append: DiskWork | None = None
        """The running write."""
        self._failure = ""
        """The error of the last write; empty if it succeeded."""
        self._failure_is_full: bool = False
        """Whether the disk was full."""
        self._failed_ms: i64 = 0
        """When the last write failed; 0 once it may be retried."""
        self._wanted: i64 = _COMPLETE
        """The file counts only after a rewrite that has all groups up to this one; _COMPLETE while it counts."""
        self._wanted_ms: i64 = 0
        """Since when the file does not count."""

    # --- what others look at ------------------------------------------------------------------------------------------

    @property
    def enabled(self) -> bool:
        """Whether changes are logged."""
        return self.status != OFF

    @property
    def counts(self) -> bool:
        """Whether the file has what was written to it. Otherwise it must be rewritten first."""
        return self._wanted == _COMPLETE

    @property
    def incomplete(self) -> bool:
        """Whether the file counts only after a rewrite."""
        return self.status == WAIT_REWRITE or (self.status == ON and not self.counts)

    @property
    def idle(self) -> bool:
        """Whether no disk work on the file is under way."""
        return self._append is None and self.sync.work is None

    @property
    def failed(self) -> bool:
        """Whether the last write or sync failed."""
        return bool(self._failure or self.sync.failure)

    @property
    def unsynced_bytes(self) -> i64:
        """The size of the records that a power loss would take."""
        return self.groups.written_bytes - self.sync.synced_bytes + self.groups.buffer_bytes

    def safe_group(self, *, rewriting: bool) -> i64:
        """The number of the last group that is as safe as the sync policy promises."""
        synced = self.sync.synced
        if self._is_strict(rewriting):
            return synced
        written = self.groups.written
        return written if self._strict_to <= synced else max(synced, min(written, self._strict_from - 1))

    def must_sync(self, group: i64) -> None:
        """A group that was logged is only safe when it is synced, and is synced at once, whatever the policy."""
        if self._strict_to <= self.sync.synced:
            self._strict_from = group
        self._strict_to = group

    def _is_strict(self, rewriting: bool) -> bool:
        """Whether only synced groups are safe."""
        return self._sync_policy == SYNC_ALWAYS and not self._skips_syncs(rewriting)

    def _skips_syncs(self, rewriting: bool) -> bool:
        """Whether no syncs are made, because the file is being rewritten (`no-appendfsync-on-rewrite`)."""
        return rewriting and self._state.config.no_appendfsync_on_rewrite

    # --- on and off ---------------------------------------------------------------------------------------------------

    def begin(self, size_bytes: i64, *, counts: bool) -> None:
        """Log from now on to the end of a file of this size, whose content is in memory.

        Unless it `counts`, records that are appended to it may not be found there.
        """
        state = self._state
        self.status = ON
        self.size_bytes = size_bytes
        if size_bytes > 0:  # the last run may not have synced all of it: it counts as one group that must be synced now
            self.sync.synced = state.ready.logged
            state.ready.logged += 1
            self.groups.written = state.ready.logged
            self.sync.began_ms = state.now_ms - SYNC_MS
        else:
            self.groups.written = state.ready.logged
            self.sync.synced = state.ready.logged
        if not counts:
            self.distrust(state.ready.logged)

    def follow_policy(self) -> None:
        """Apply the sync policy after a change of the configuration."""
        self._sync_policy = _SYNC_POLICIES[self._state.config.appendfsync]

    def distrust(self, group: i64) -> None:
        """The file counts only after a rewrite that has all groups up to this one."""
        self._wanted = group
        self._wanted_ms = self._state.now_ms

    def stop(self) -> None:
        """Stop logging. Waiting groups are written if possible, but no reply waits: the disk may be failing."""
        self.status = OFF
        if self.groups.waiting and not self._failure:
            work = DiskWork(disk.APPEND, self.name)
            work.data = self.groups.waiting
            self._disk.start(work)
        self._disk.start(DiskWork(disk.SYNC, self.name))
        self._disk.start(DiskWork(disk.CLOSE, self.name))
        self._state.lifecycle.timers.disarm(self._next_sync)
        self._append = None
        self.groups.drop_waiting()
        self.sync.stop()
        self._failure = ""
        self._failed_ms = 0
        self._wanted = _COMPLETE
        self.judge()

    # --- writing and syncing ------------------------------------------------------------------------------------------

    def advance(self, *, rewriting: bool) -> None:
        """Start the next disk work on the file; `rewriting`: while a rewrite is running."""
        self._sync_if_due(rewriting)  # before more is written, because a sync would wait for it
        while self.groups.waiting and self._append is None and self._failed_ms == 0:
            self._write(rewriting)
        self._sync_if_due(rewriting)

    def _write(self, rewriting: bool) -> None:
        """Append the waiting groups; after a failure only the first of them, as a probe."""
        work = DiskWork(disk.APPEND, self.name, self._owner)
        work.data = self.groups.take(self._state.now_ms, PROBE_BYTES if self._failure else 0)
        self._append = work
        self._disk.start(work)
        if work.finished:
            self._append_done(work, rewriting)

    def _append_done(self, work: DiskWork, rewriting: bool) -> None:
        state = self._state
        groups = self.groups
        self._append = None
        self._note_write(max(work.spent_ms, state.now_ms - groups.since_ms), rewriting)
        if work.error:
            self._failure = work.error
            self._failure_is_full = work.full
            self._failed_ms = state.now_ms
            groups.give_back(state.ready.logged)
            self.judge()
            return
        self.size_bytes += groups.written_now(state.now_ms)
        self._failure = ""
        if state.write_refusal:
            self.judge()

    def _sync_if_due(self, rewriting: bool) -> None:
        """Sync written groups if the policy says so now; otherwise arm an alarm for it."""
        sync = self.sync
        if sync.work is not None or sync.synced >= self.groups.written:
            return
        state = self._state
        policy = self._sync_policy
        at_once = sync.synced < self._strict_to and self._strict_from <= self.groups.written
        if sync.failure or (not at_once and (policy == SYNC_NEVER or self._skips_syncs(rewriting))):
            return
        if not at_once and policy == SYNC_EVERY_SECOND and state.now_ms - sync.began_ms < SYNC_MS:
            if self._next_sync.awake_ms == 0:
                state.lifecycle.timers.arm(self._next_sync, sync.began_ms + SYNC_MS)
            return
        work = DiskWork(disk.SYNC, self.name, self._owner)
        sync.begin(work, self.groups, state.now_ms)
        self._disk.start(work)
        if work.finished:
            self._sync_done(work)

    def _sync_done(self, work: DiskWork) -> None:
        state = self._state
        sync = self.sync
        sound = sync.done(work.error, state.now_ms)
        state.counters.observe(FSYNC_DURATION, sync.last_ms)
        if self._sync_policy == SYNC_ALWAYS:
            self._note_latency(b"aof-fsync-always", sync.last_ms)
        if not sound and self.counts:
            self.distrust(0)
        if not sound or state.write_refusal:
            self.judge()

    def done(self, work: DiskWork, *, rewriting: bool) -> bool:
        """Continue after an append or a sync; return False if the work is not of this file."""
        if work is self._append:
            self._append_done(work, rewriting)
        elif work is self.sync.work:
            self._sync_done(work)
        else:
            return False
        return True

    def retry_if_due(self) -> None:
        """Allow another write after a failed one, once RETRY_MS have passed."""
        if self._failed_ms > 0 and self._state.now_ms - self._failed_ms >= RETRY_MS:
            self._failed_ms = 0

    def write_all(self) -> str:
        """Write and sync the rest, and wait for the disk, while no rewrite is running. Returns the error, if any."""
        self._sync_all()
        if self.groups.waiting:
            work = DiskWork(disk.APPEND, self.name)
            work.data = self.groups.take(self._state.now_ms, 0)
            self._disk.perform(work)
            self._append_done(work, rewriting=False)
            self._sync_all()
        if self._failure:
            return f"can't write to {self.name}: {self._failure}"
        return f"can't sync {self.name}: {self.sync.failure}" if self.sync.failure else ""

    def _sync_all(self) -> None:
        """Sync the file after all work that was started, and wait for the disk. The disk reports each failure once."""
        work = DiskWork(disk.SYNC, self.name)
        began_ms = self._state.now_ms
        self._disk.perform(work)
        append = self._append
        if append is not None:
            self._append_done(append, rewriting=False)
        running = self.sync.work
        if running is not None:
            self._sync_done(running)
        self.sync.begin(work, self.groups, began_ms)
        self._sync_done(work)

    # --- rewrites -----------------------------------------------------------------------------------------------------

    def replaced(self, size_bytes: i64, covers: i64, *, outdated: bool) -> None:
        """Continue with the rewritten file, which is synced and has all groups up to `covers`.

        `outdated`: another rewrite follows at once, because this one does not have everything.
        """
        state = self._state
        if self.status == OFF or (self.status == WAIT_REWRITE and outdated):
            return
        self.status = ON
        self.size_bytes = size_bytes
        self.groups.replaced(covers, state.ready.logged, state.now_ms)
        self.sync.replaced(covers, self.groups, state.now_ms)
        self._failure = ""
        self._failed_ms = 0
        if self._wanted <= covers:
            self._wanted = _COMPLETE
        self.judge()

    def rewrite_ended(self) -> None:
        """Continue after a rewrite: after `replaced` if it succeeded, or after a failure."""
        if self.status != ON:
            self.groups.drop_waiting()
        self._state.lifecycle.journal.on = self.enabled

    # --- write refusal ------------------------------------------------------------------------------------------------

    def judge(self) -> None:
        """Decide whether to refuse new jobs, and log a change of that."""
        now_ms = self._state.now_ms
        late = self.sync.is_late(now_ms, SLOW_MS)
        why = ""
        if self._failure:
            why = not_written(self._failure, is_full=self._failure_is_full)
        elif self.sync.failure:
            why = not_synced(self.sync.failure)
        elif not self.counts and now_ms - self._wanted_ms > SLOW_MS:
            why = NOT_THERE_YET
        elif late or self.groups.wait_ms(now_ms) > SLOW_MS:
            why = SLOW
        self.refusal.set(why)

    # --- latency ------------------------------------------------------------------------------------------------------

    def _note_write(self, spent_ms: i64, rewriting: bool) -> None:
        """Count the latency of a write, by what else was under way with the file."""
        if spent_ms == 0:
            return
        self._note_latency(b"aof-write", spent_ms)
        if self.sync.work is not None:
            self._note_latency(b"aof-write-pending-fsync", spent_ms)
        elif rewriting:
            self._note_latency(b"aof-write-active-child", spent_ms)
        else:
            self._note_latency(b"aof-write-alone", spent_ms)

    def _note_latency(self, event: bytes, spent_ms: i64) -> None:
        state = self._state
        if 0 < state.config.latency_monitor_threshold <= spent_ms:
            state.monitoring.latency.add(event, state.host.wall_us() // 1_000_000, spent_ms)
