"""The syncs of the append-only file: how much of it survives a power loss."""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.host.disk import DiskWork
from disqued.persistence.groups import Groups


class FileSync:
    """The sync that is running, and what earlier ones achieved."""

    def __init__(self, now_ms: i64) -> None:
        self.work: DiskWork | None = None
        """The running sync."""
        self.began_ms: i64 = now_ms
        """When the last sync began."""
        self.synced: i64 = 0
        """The number of the last group that was synced."""
        self.synced_bytes: i64 = 0
        """How many of the bytes ever written were synced."""
        self.failure = ""
        """The error of the last sync, after which the content of the file is unknown; empty if there was none."""
        self.last_ms: i64 = 0
        """The duration of the last sync."""
        self.delayed: i64 = 0
        """The number of syncs that took too long."""
        self._is_delayed: bool = False
        """Whether the running sync is one of them."""
        self._to: i64 = 0
        """The number of the last group that is being synced."""
        self._to_bytes: i64 = 0
        """How many of the bytes ever written are being synced."""

    def begin(self, work: DiskWork, groups: Groups, now_ms: i64) -> None:
        """Note that a sync of all written groups begins."""
        self.work = work
        self.began_ms = now_ms
        self._to = groups.written
        self._to_bytes = groups.written_bytes

    def done(self, error: str, now_ms: i64) -> bool:
        """Note that the sync ended. Returns False if it failed, so that the content of the file is unknown."""
        self.work = None
        self._is_delayed = False
        self.last_ms = now_ms - self.began_ms
        if not error:
            self.synced = max(self._to, self.synced)
            self.synced_bytes = max(self._to_bytes, self.synced_bytes)
        elif self.synced < self._to:
            self.failure = error
            return False
        return True

    def replaced(self, covers: i64, groups: Groups, now_ms: i64) -> None:
        """Note that a rewritten file, which is synced, has all groups up to `covers`."""
        self.synced = max(covers, self.synced)
        self.synced_bytes = groups.written_bytes
        self.began_ms = now_ms
        self.failure = ""

    def stop(self) -> None:
        """Note that nobody waits for a sync any more."""
        self.work = None
        self.failure = ""
        self._is_delayed = False

    def is_late(self, now_ms: i64, limit_ms: i64) -> bool:
        """Whether the running sync takes longer than this; it is counted once."""
        late = self.work is not None and now_ms - self.began_ms > limit_ms
        if late and not self._is_delayed:
            self._is_delayed = True
            self.delayed += 1
        return late
