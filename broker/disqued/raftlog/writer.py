"""Writes frames and syncs them: one write and one sync at a time, for all groups.

What is added while a write or a sync is under way is gathered into the next frame, so it shares the next sync. Which
frames are safe depends on the policy: with `always` those that were synced, with `everysec` those that were written.
With `always`, a sync follows each write.

A write that fails leaves nothing in the file. It is repeated each second, and later frames wait for it, so the order
stays. After a sync that failed nothing is written any more: systems take unwritten pages for written ones, and a
second sync would succeed without writing them. A new segment begins only when the one before it is synced as a whole,
so only the newest segment can have a torn end.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from mypy_extensions import i64

from disqued.core.host import disk
from disqued.core.host.disk import VERB_NAMES, Disk, DiskOwner, DiskWork
from disqued.raftlog.frames import Frame, find_in
from disqued.raftlog.segments import Segment
from disqued.raftlog.tuning import LogTuning

RETRY_MS: Final = 1000
SYNC_MS: Final = 1000
_NEVER_MS: Final = 0


class Writer:
    """The end of the log."""

    def __init__(self, host_disk: Disk, owner: DiskOwner, tuning: LogTuning) -> None:
        self._disk = host_disk
        self._owner = owner
        self._tuning = tuning
        self.queue: deque[Frame] = deque()
        """Frames that are not written."""
        self._file: Segment | None = None
        """The segment that is open."""
        self._work: DiskWork | None = None
        """The write, or the making of a file, that is under way."""
        self._sync: DiskWork | None = None
        self._syncing: i64 = 0
        self._syncing_offset: i64 = 0
        self.written: i64 = 0
        """The number of the last frame that is written."""
        self._written_offset: i64 = 0
        self.synced: i64 = 0
        """The number of the last frame that is synced."""
        self.synced_offset: i64 = 0
        """Up to where the open segment is synced."""
        self._sync_began_ms: i64 = 0
        self._sync_due_ms: i64 = 0
        """When to sync what was written, if nothing asks for it before."""
        self._must_sync: i64 = 0
        """The number of a frame that must be synced at once, whatever the policy."""
        self.blocked = ""
        """Why the last write failed; empty if it did not."""
        self._failed_ms: i64 = 0
        self.failure = ""
        """Why nothing is written any more."""
        self.syncs: i64 = 0
        """How often it synced."""

    @property
    def safe(self) -> i64:
        """The number of the last frame that is as safe as the policy promises."""
        return self.synced if self._tuning.sync_always else self.written

    @property
    def idle(self) -> bool:
        """Whether nothing is under way or waits."""
        return self.free and not self.queue

    @property
    def free(self) -> bool:
        """Whether nothing is under way, and what was written is as safe as it will be for now."""
        if self._work is not None or self._sync is not None or self.failure or self.blocked:
            return False
        return self.synced == self.written or self.synced >= self._must_sync

    @property
    def wake_ms(self) -> i64:
        """When `advance` is needed next for the sake of time; 0 if it is not."""
        if self.failure:
            return _NEVER_MS
        if self.blocked:
            return self._failed_ms + RETRY_MS
        return self._sync_due_ms if self.synced < self.written else _NEVER_MS

    def offset_synced(self, segment: Segment) -> i64:
        """Up to where a segment is synced, as a frame in it may say."""
        return self.synced_offset if segment is self._file else 0

    def want_synced(self, number: i64) -> None:
        """Sync up to this frame as soon as possible."""
        self._must_sync = max(self._must_sync, number)

    def find(self, place: i64) -> bytes:
        """The bytes of a record that is not written yet; empty if it is written."""
        for frame in self.queue:
            found = find_in(frame, place)
            if found:
                return found
        return b""

    # --- steps --------------------------------------------------------------------------------------------------------

    def advance(self, now_ms: i64) -> None:
        """Start what can be started."""
        if self.blocked and self._work is None and now_ms >= self._failed_ms + RETRY_MS:
            self._failed_ms = now_ms  # one attempt per second
            self._write(now_ms)
        while self._work is None and self._sync is None and not self.failure and not self.blocked:
            if self._sync_due(now_ms):
                self._start_sync(now_ms)
            elif self.queue:
                self._write(now_ms)
            else:
                return

    def _sync_due(self, now_ms: i64) -> bool:
        """Whether to sync before anything else is written."""
        if self.synced == self.written:
            return False
        if self.queue:
            if self._written_offset - self.synced_offset >= self._tuning.frame_bytes:
                return True
            return self.queue[0].segment is not self._file
        return self.synced < self._must_sync or now_ms >= self._sync_due_ms

    def _write(self, now_ms: i64) -> None:
        """Write the next frame, or make its file."""
        frame = self.queue[0]
        if frame.segment is not self._file:
            work = DiskWork(disk.OPEN, frame.segment.name, self._owner)
            work.ahead = True
        else:
            work = DiskWork(disk.APPEND, frame.segment.name, self._owner)
            work.data = [frame.data]
        self._work = work
        self._disk.start(work)
        if work.finished:
            self.done(work, now_ms)

    def _start_sync(self, now_ms: i64) -> None:
        file = self._file
        assert file is not None, "something was written"
        work = DiskWork(disk.SYNC, file.name, self._owner)
        work.quick = self._tuning.sync_always
        self._sync = work
        self._syncing = self.written
        self._syncing_offset = self._written_offset
        self._sync_began_ms = now_ms
        self._sync_due_ms = 0
        self._disk.start(work)
        if work.finished:
            self.done(work, now_ms)

    def done(self, work: DiskWork, now_ms: i64) -> bool:
        """Continue after work; returns False if it is not of the writer."""
        if work is self._sync:
            self._sync = None
            if work.error:
                self.failure = f"can't sync {work.name}: {work.error}"
            else:
                self.syncs += 1
                self.synced = self._syncing
                self.synced_offset = self._syncing_offset
            return True
        if work is not self._work:
            return False
        self._work = None
        if work.error:
            self.blocked = f"can't {VERB_NAMES[work.verb]} {work.name}: {work.error}"
            self._failed_ms = now_ms
            return True
        self.blocked = ""
        if work.verb == disk.OPEN:
            self._opened(self.queue[0].segment)
            if work.size > 0:
                self.failure = f"{work.name} exists and was not listed"
        else:
            frame = self.queue.popleft()
            self._note_written(frame)
        return True

    def _note_written(self, frame: Frame) -> None:
        """Decide when to sync the frame."""
        self.written = frame.number
        self._written_offset = frame.end
        if self._tuning.sync_always:
            self.want_synced(frame.number)
        else:
            self._sync_due_ms = self._sync_began_ms + SYNC_MS

    def _opened(self, segment: Segment) -> None:
        """Continue in a new file."""
        if self._file is not None:
            self._disk.start(DiskWork(disk.CLOSE, self._file.name))
        self._file = segment
        self._written_offset = 0
        self.synced_offset = 0

    def finish(self, now_ms: i64) -> str:
        """Write and sync everything, and wait for the disk. Returns the error, if any."""
        running = self._work or self._sync
        if running is not None:
            self._disk.perform(DiskWork(disk.SYNC, running.name))  # after all that was started
            self.done(running, now_ms)
        self.blocked = ""
        while self.queue and not self.failure and not self.blocked:
            frame = self.queue[0]
            if frame.segment is not self._file:
                self._sync_now(now_ms)
                self._work = DiskWork(disk.OPEN, frame.segment.name)
                self._work.ahead = True
            else:
                self._work = DiskWork(disk.APPEND, frame.segment.name)
                self._work.data = [frame.data]
            self._disk.perform(self._work)
            self.done(self._work, now_ms)
        self._sync_now(now_ms)
        if self._file is not None:
            self._disk.perform(DiskWork(disk.CLOSE, self._file.name))
        return self.failure or self.blocked

    def _sync_now(self, now_ms: i64) -> None:
        """Sync the open segment, and wait for it."""
        if self._file is None or self.synced == self.written or self.failure:
            return
        work = DiskWork(disk.SYNC, self._file.name)
        self._sync = work
        self._syncing = self.written
        self._syncing_offset = self._written_offset
        self._disk.perform(work)
        self.done(work, now_ms)

    def drop_queue(self) -> None:
        """The log is out of service: forget what is not written."""
        self.queue.clear()
