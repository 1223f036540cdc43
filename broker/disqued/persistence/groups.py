"""The groups of records that are not yet in the append-only file, in order: being written, or waiting for that."""

from __future__ import annotations

from mypy_extensions import i64


class Groups:
    """A queue of groups for the disk. Groups are numbered from 1 on, by the order in which they were logged."""

    def __init__(self) -> None:
        self.waiting: list[bytes] = []
        """Groups that were not yet given to the disk."""
        self.taken: list[bytes] = []
        """Groups that are being written; empty if none are."""
        self.buffer_bytes: i64 = 0
        """The size of both."""
        self.written: i64 = 0
        """The number of the last group in the file."""
        self.written_bytes: i64 = 0
        """The number of bytes ever written."""
        self.since_ms: i64 = 0
        """When the write under way began; if there is none, since when the first waiting group waits for one."""
        self._taken_to: i64 = 0
        """The number of the last group that is being written."""

    def add(self, group: bytes, now_ms: i64) -> None:
        """Add a group that was logged."""
        if not self.waiting and not self.taken:
            self.since_ms = now_ms
        self.waiting.append(group)
        self.buffer_bytes += len(group)

    def take(self, now_ms: i64, limit_bytes: i64) -> list[bytes]:
        """Return the waiting groups that must be written next; `written_now` or `give_back` follows.

        After the first one, groups beyond `limit_bytes` stay, unless it is 0.
        """
        waiting = self.waiting
        count: i64 = len(waiting)
        if limit_bytes > 0:
            count = 0
            size: i64 = 0
            while count < len(waiting) and size < limit_bytes:
                size += len(waiting[count])
                count += 1
        self.taken = waiting[:count]
        self.waiting = waiting[count:]
        self._taken_to = self.written + count
        self.since_ms = now_ms
        return self.taken

    def written_now(self, now_ms: i64) -> i64:
        """Note that the groups that were taken are in the file. Returns their size."""
        size: i64 = 0
        for group in self.taken:
            size += len(group)
        self.taken = []
        self.buffer_bytes -= size
        self.written_bytes += size
        self.written = max(self._taken_to, self.written)
        self.since_ms = now_ms
        return size

    def give_back(self, logged: i64) -> None:
        """Put the groups that were taken back to the front, because they could not be written."""
        self.waiting = self.taken + self.waiting
        self.taken = []
        self._drop_written(logged)

    def replaced(self, covers: i64, logged: i64, now_ms: i64) -> None:
        """Note that a rewritten file has all groups up to `covers`; the last group ever logged is `logged`."""
        self.written = max(covers, self.written)
        self._drop_written(logged)
        self.since_ms = now_ms

    def _drop_written(self, logged: i64) -> None:
        """Drop the waiting groups that are already in the file."""
        surplus: i64 = len(self.waiting) - (logged - self.written)
        if surplus > 0:
            for group in self.waiting[:surplus]:
                self.buffer_bytes -= len(group)
            self.waiting = self.waiting[surplus:]

    def drop_waiting(self) -> None:
        """Drop all groups that are not in the file."""
        self.waiting = []
        self.taken = []
        self.buffer_bytes = 0

    def wait_ms(self, now_ms: i64) -> i64:
        """How long the disk has been writing, or the first waiting group has waited; 0 if there is none."""
        return now_ms - self.since_ms if self.taken or self.waiting else 0
