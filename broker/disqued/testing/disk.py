"""A disk in memory that outlives the node, and on which tests inject faults.

By default all work is done at once. `delay_ms` makes verbs slow, `hold` suspends them until `finish` (a disk that
hangs, or a test that checks the state between two steps), `fail` makes them fail, and `capacity_bytes` makes the disk
full. Each file knows how much of it was written and how much synced. `crash` ends the process and keeps what was
written; `lose_power` ends the machine and loses unsynced data, wholly or from some point on. Pending work is then done,
half done or not done, depending on the seed. A file that had space ahead of its end ends with zeros then.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Final

from disqued.core.host import disk
from disqued.core.host.disk import DiskWork

NEVER_MS: Final = 1 << 62
PAGE_BYTES: Final = 64
"""The page size of the file system; small, so that small files have several pages."""
_AFFECTED: Final = {
    errno.ENOSPC: (disk.APPEND,),
    errno.EROFS: (disk.OPEN, disk.APPEND, disk.REPLACE, disk.REMOVE, disk.TRUNCATE, disk.KEEP),
    errno.EIO: (disk.OPEN, disk.APPEND, disk.SYNC, disk.REPLACE, disk.TRUNCATE),
}
"""Verbs that an error of the whole disk affects."""


class _File:
    """One file, which may have several names."""

    def __init__(self, data: bytes = b"", *, kept: bool = False) -> None:
        self.data = bytearray(data)
        self.synced_bytes = len(data)
        """How much of it survives a power loss, except for doubtful ranges."""
        self.doubtful: list[tuple[int, int]] = []
        """Ranges that a sync failed to write and the system nevertheless considers written."""
        self.kept = kept
        """Whether its directory entry survives a power loss."""
        self.ahead = False
        """Whether it has space ahead of its end."""

    def sync(self, size: int) -> None:
        self.synced_bytes = max(self.synced_bytes, min(size, len(self.data)))
        self.kept = True

    def fail_to_sync(self, size: int) -> None:
        if self.synced_bytes < size:
            self.doubtful.append((self.synced_bytes, size))
            self.synced_bytes = size

    def cut(self, size: int) -> None:
        del self.data[size:]
        self.doubtful = [(start, min(end, size)) for start, end in self.doubtful if start < size]
        self.synced_bytes = min(self.synced_bytes, size)

    def lose_power(self, chance: Random) -> None:
        """Keep a part of the unsynced data; zeros may replace other parts."""
        for start, end in self.doubtful:
            if chance.random() < 0.7:
                self.data[start:end] = bytes(end - start)
        self.doubtful = []
        size = len(self.data)
        start = self.synced_bytes
        if start < size:
            left = chance.choice((start, size, chance.randint(start, size), chance.randint(start, size)))
            if self.ahead:
                left = max(left - left % PAGE_BYTES, start)
            del self.data[left:]
            draw = chance.random()
            if draw < 0.25:
                self._blank(chance.randint(start, left), left)
            elif draw < 0.4:
                self._blank(*sorted((chance.randint(start, left), chance.randint(start, left))))
        self.end(chance)
        self.synced_bytes = len(self.data)

    def end(self, chance: Random) -> None:
        """Nobody has the file open any more."""
        if self.ahead:
            self.data += bytes(chance.choice((0, 8, 64, 1000, 5000)))
            self.ahead = False

    def _blank(self, start: int, end: int) -> None:
        """Zero the pages of which only the length reached the disk."""
        start = max(start - start % PAGE_BYTES, self.synced_bytes)
        if start < end:
            self.data[start:end] = bytes(end - start)


class _Pending:
    """Work in progress."""

    def __init__(self, work: DiskWork, due_ms: int, size: int) -> None:
        self.work = work
        self.due_ms = due_ms
        """When it is done; NEVER_MS while held."""
        self.size = size
        """How many bytes it syncs: those that were written when it began."""

    def delays(self, work: DiskWork) -> bool:
        """Whether later work must wait for this; appends do not wait for a sync."""
        own = self.work
        if own.verb == disk.SYNC and work.verb == disk.APPEND:
            return False
        return work.name in {own.name, own.other} or bool(work.other and work.other in {own.name, own.other})


class MemoryDisk:
    """Implements `disqued.core.host.disk.Disk`."""

    def __init__(self, clock: Callable[[], int] | None = None, seed: object = 0) -> None:
        self._clock: Callable[[], int] = clock or (lambda: 0)
        self.chance = Random(f"disk {seed}")  # noqa: S311 - repeatable chance is the point
        self._entries: dict[str, _File] = {}
        self._opened: set[str] = set()
        self._removed: dict[str, _File] = {}
        """Files whose removal a power loss may undo."""
        self._pending: list[_Pending] = []
        self._finished: list[DiskWork] = []
        """Completed work that was not reported to the node yet."""
        self.next_ms = NEVER_MS
        """When the next work completes."""
        self.delay_ms: dict[int, int] = {}
        """How long each verb takes; 0 if not listed."""
        self.jitter_ms = 0
        """The maximum random addition to a delay."""
        self.held: set[int] = set()
        """Verbs that are suspended until `finish`."""
        self._failing: dict[int, int] = {}
        """The error numbers of failing verbs."""
        self._failures_left: dict[int, int] = {}
        self.capacity_bytes = NEVER_MS
        """The capacity of the disk; see `fill`."""
        self.done: Counter[str] = Counter()
        """How often each verb succeeded, by name."""
        self.failed: Counter[str] = Counter()

    # --- the node -----------------------------------------------------------------------------------------------------

    def start(self, work: DiskWork) -> None:
        """Do the work at once, unless it takes time, is held, or must wait for other work."""
        verb = int(work.verb)
        delay_ms = self.delay_ms.get(verb, 0)
        if delay_ms > 0:
            delay_ms += int(self.chance.random() * self.jitter_ms)
        due_ms = NEVER_MS if verb in self.held else self._clock() + delay_ms
        before = [pending.due_ms for pending in self._pending if pending.delays(work)]
        due_ms = max(due_ms, *before) if before else due_ms
        if due_ms <= self._clock() and not before:
            self._carry_out(work, self._size(work.name))
            return
        self._pending.append(_Pending(work, due_ms, self._size(work.name)))
        self.next_ms = min(self.next_ms, due_ms)

    def perform(self, work: DiskWork) -> None:
        """Do the work at once, after the pending work that it must wait for."""
        before: list[_Pending] = []
        for pending in reversed(self._pending):
            if pending.delays(work) or any(pending.delays(later.work) for later in before):
                before.insert(0, pending)
        self._carry_out_pending(before)
        if self._finished:
            self.next_ms = self._clock()
        self._carry_out(work, self._size(work.name))

    # --- the driver of the node ---------------------------------------------------------------------------------------

    def take_finished(self) -> list[DiskWork]:
        """The work completed by now, each once, for `Node.disk_done`."""
        now_ms = self._clock()
        due = [pending for pending in self._pending if pending.due_ms <= now_ms]
        if due:
            self._carry_out_pending(sorted(due, key=lambda pending: pending.due_ms))
        finished, self._finished = self._finished, []
        self.next_ms = min([pending.due_ms for pending in self._pending], default=NEVER_MS)
        return finished

    # --- faults and checks --------------------------------------------------------------------------------------------

    @property
    def files(self) -> dict[str, bytearray]:
        """All files as a program sees them, by name."""
        return {name: file.data for name, file in self._entries.items()}

    def put(self, name: str, data: bytes) -> None:
        """Create a synced file."""
        self._entries[name] = _File(data, kept=True)

    def synced_bytes(self, name: str) -> int:
        """How much of a file certainly survives a power loss."""
        file = self._entries[name]
        return min([file.synced_bytes, *[start for start, _ in file.doubtful]]) if file.kept else 0

    def flip(self, name: str, bit: int) -> None:
        """Damage one bit of a file."""
        self._entries[name].data[bit // 8] ^= 1 << bit % 8

    @property
    def used_bytes(self) -> int:
        """The size of all files."""
        return sum(len(data) for data in {id(data): data for data in self.files.values()}.values())

    def fail(self, *verbs: int, error: int = errno.EIO, times: int = NEVER_MS) -> None:
        """Make verbs fail, each `times` times or until `repair`; by default those that the error affects."""
        for verb in verbs or _AFFECTED[error]:
            self._failing[verb] = error
            self._failures_left[verb] = times

    def failing(self, verb: int) -> bool:
        """Whether a verb fails now."""
        return verb in self._failing

    def fill(self, spare_bytes: int = 0) -> None:
        """Make the disk full except for `spare_bytes`. Removing files frees space."""
        self.capacity_bytes = self.used_bytes + spare_bytes

    def hold(self, *verbs: int) -> None:
        """Suspend these verbs, or all of them, until `finish`."""
        self.held |= set(verbs) or set(range(len(disk.VERB_NAMES)))

    def repair(self) -> None:
        """Remove all faults. Held work still needs `finish`."""
        self._failing.clear()
        self._failures_left.clear()
        self.capacity_bytes = NEVER_MS
        self.delay_ms.clear()
        self.jitter_ms = 0
        self.held.clear()

    @property
    def pending(self) -> list[DiskWork]:
        """Pending work, oldest first."""
        return [pending.work for pending in self._pending]

    def finish(self, works: int = NEVER_MS) -> None:
        """Complete the oldest pending work; it is done when the driver next asks."""
        now_ms = self._clock()
        for pending in self._pending[:works]:
            pending.due_ms = now_ms
        if self._pending:
            self.next_ms = min(self.next_ms, now_ms)

    # --- the end ------------------------------------------------------------------------------------------------------

    def crash(self) -> None:
        """The process ends: written data stays; pending work is done, half done or not done."""
        self._stop()
        for file in self._entries.values():
            file.end(self.chance)

    def _stop(self) -> None:
        """Do pending work, or a part of it, or not."""
        stuck: list[_Pending] = []
        for pending in list(self._pending):
            waits = any(before.delays(pending.work) for before in stuck)
            if not waits and self.chance.random() < 0.5:
                self._carry_out_pending([pending])
                continue
            stuck.append(pending)
            if not waits:
                self._begin(pending.work)
        self._pending = []
        self._finished = []
        self._opened.clear()
        self.next_ms = NEVER_MS

    def _begin(self, work: DiskWork) -> None:
        """The process ends during the work."""
        file = self._entries.get(work.name)
        if work.verb == disk.APPEND and file is not None and disk.APPEND not in self._failing:
            data = b"".join(work.data)
            end = len(file.data) + self.chance.randint(0, len(data))
            if file.ahead:
                end -= end % PAGE_BYTES  # it is written page by page
            file.data += data[: max(end - len(file.data), 0)]

    def lose_power(self) -> None:
        """The machine loses power: unsynced data is lost, wholly or from some point on, or replaced by zeros."""
        self._stop()
        for name, file in list(self._entries.items()):
            if file.kept:
                continue
            file.kept = True
            if self.chance.random() < 0.5:
                del self._entries[name]
        for name, file in self._removed.items():
            if name not in self._entries and self.chance.random() < 0.3:
                self._entries[name] = file
        self._removed = {}
        for file in {id(file): file for file in self._entries.values()}.values():
            file.lose_power(self.chance)

    # --- implementation -----------------------------------------------------------------------------------------------

    def _size(self, name: str) -> int:
        file = self._entries.get(name)
        return 0 if file is None else len(file.data)

    def _carry_out_pending(self, due: list[_Pending]) -> None:
        """Carry out pending work. A sync covers what was appended before it was started."""
        for pending in list(due):
            work = pending.work
            self._carry_out(work, pending.size)
            self._finished.append(work)
            behind = self._pending[self._pending.index(pending) + 1 :]
            self._pending.remove(pending)
            for later in behind:
                if later.work.name == work.name and work.verb == disk.APPEND:
                    later.size = self._size(work.name)

    def _carry_out(self, work: DiskWork, size: int) -> None:
        """Do the work, or fail. A sync covers the first `size` bytes."""
        work.error = self._why_not(work)
        name = disk.VERB_NAMES[int(work.verb)]
        if work.error:
            self.failed[name] += 1
            if work.verb in {disk.SYNC, disk.REPLACE} and work.name in self._entries:
                self._entries[work.name].fail_to_sync(size)
        else:
            self.done[name] += 1
            self._do(work, size)
        work.finished = True

    def _why_not(self, work: DiskWork) -> str:
        """The error of the work; empty if it succeeds."""
        verb = int(work.verb)
        if verb in {disk.APPEND, disk.SYNC}:
            assert work.name in self._opened, f"{work.name} is not open"
        if verb == disk.READ and work.name not in self._entries:
            work.missing = True
            return os.strerror(errno.ENOENT)
        if verb in self._failing:
            number = self._failing[verb]
            self._failures_left[verb] -= 1
            if self._failures_left[verb] <= 0:
                del self._failing[verb]
            work.full = number == errno.ENOSPC
            return os.strerror(number)
        if verb in {disk.REPLACE, disk.TRUNCATE, disk.KEEP} and work.name not in self._entries:
            work.missing = True
            return os.strerror(errno.ENOENT)
        if verb == disk.KEEP and work.other in self._entries:
            return os.strerror(errno.EEXIST)
        if verb == disk.APPEND and self.capacity_bytes < NEVER_MS:
            work.full = self.used_bytes + sum(len(data) for data in work.data) > self.capacity_bytes
            return os.strerror(errno.ENOSPC) if work.full else ""
        return ""

    def _do(self, work: DiskWork, size: int) -> None:
        entries = self._entries
        name = work.name
        match work.verb:
            case disk.OPEN:
                self._opened.add(name)
                file = entries.setdefault(name, _File())
                file.ahead = bool(work.ahead)
                work.size = len(file.data)
            case disk.APPEND:
                data = entries[name].data
                for part in work.data:
                    data += part
            case disk.SYNC:
                entries[name].sync(size)
            case disk.REPLACE:
                entries[name].sync(self._size(name))
                entries[work.other] = entries.pop(name)
                self._removed.clear()
                self._opened.discard(work.other)
                if name in self._opened:
                    self._opened.remove(name)
                    self._opened.add(work.other)
            case disk.REMOVE:
                if name in entries:
                    self._removed[name] = entries.pop(name)
                self._opened.discard(name)
            case disk.READ:
                work.data = [bytes(entries[name].data[work.offset : work.offset + work.size])]
                work.file_bytes = self._size(name)
            case disk.TRUNCATE:
                entries[name].cut(int(work.size))
                entries[name].sync(self._size(name))
            case disk.KEEP:
                entries[work.other] = entries[name]
                entries[name].kept = True
            case disk.CLOSE:
                self._opened.discard(name)
                if name in entries:
                    entries[name].ahead = False
            case disk.LIST:
                work.data = sorted(entry.encode() for entry in entries if entry.startswith(name))
