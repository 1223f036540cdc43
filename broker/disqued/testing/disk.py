"""A disk in memory that outlives the node, with all that can befall one.

As it is, everything that is started is done at once. `delay_ms` makes verbs slow, `hold` leaves works undone until
`finish` (a disk that hangs; a test that wants to look between two steps), `fail` has verbs fail, `capacity_bytes` makes
the disk full. Each file knows what was written and what was synced of it: `crash` is the end of the process, which
takes nothing that was written, `lose_power` the end of the machine, which takes what was not synced, wholly or from
some point on. What was under way then is done, half done or not done, as a seed says.
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
"""What a file system writes at a time; small, so that small files have pages."""
_AFFECTED: Final = {
    errno.ENOSPC: (disk.APPEND,),
    errno.EROFS: (disk.OPEN, disk.APPEND, disk.REPLACE, disk.REMOVE, disk.TRUNCATE, disk.KEEP),
    errno.EIO: (disk.OPEN, disk.APPEND, disk.SYNC, disk.REPLACE, disk.TRUNCATE),
}
"""Verbs that fail with an error of the disk as a whole."""


class _File:
    """One file, whatever its names are."""

    def __init__(self, data: bytes = b"", *, kept: bool = False) -> None:
        self.data = bytearray(data)
        self.synced_bytes = len(data)
        """So much of it survives a loss of power, but for what is doubtful."""
        self.doubtful: list[tuple[int, int]] = []
        """What a sync failed to write, after which the system takes it for written."""
        self.kept = kept
        """Whether a loss of power leaves its name."""

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
        """Of what was not synced, a part is there, and zeros may stand where others were."""
        for start, end in self.doubtful:
            if chance.random() < 0.7:
                self.data[start:end] = bytes(end - start)
        self.doubtful = []
        size = len(self.data)
        start = self.synced_bytes
        if start < size:
            left = chance.choice((start, size, chance.randint(start, size), chance.randint(start, size)))
            del self.data[left:]
            luck = chance.random()
            if luck < 0.25:
                self._blank(chance.randint(start, left), left)
            elif luck < 0.4:
                self._blank(*sorted((chance.randint(start, left), chance.randint(start, left))))
        self.synced_bytes = len(self.data)

    def _blank(self, start: int, end: int) -> None:
        """Pages of which only the length reached the disk."""
        start = max(start - start % PAGE_BYTES, self.synced_bytes)
        if start < end:
            self.data[start:end] = bytes(end - start)


class _Pending:
    """A work that is under way."""

    def __init__(self, work: DiskWork, due_ms: int, size: int) -> None:
        self.work = work
        self.due_ms = due_ms
        """When it is done; NEVER_MS while it is held."""
        self.size = size
        """What is synced by it: so many bytes were written when it began."""

    def delays(self, work: DiskWork) -> bool:
        """Whether a work that is started later has to wait for this one: what is appended does not wait for a sync."""
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
        """Files whose removal a loss of power may undo."""
        self._pending: list[_Pending] = []
        self._finished: list[DiskWork] = []
        """Works that were carried out, and of which the node was not told."""
        self.next_ms = NEVER_MS
        """When the next work is finished."""
        self.delay_ms: dict[int, int] = {}
        """How long works take, by verb; 0 if not listed."""
        self.jitter_ms = 0
        """Up to so much longer."""
        self.held: set[int] = set()
        """Verbs that are not carried out before `finish`."""
        self._failing: dict[int, int] = {}
        """Verbs that fail, and the number of the error."""
        self._failures_left: dict[int, int] = {}
        self.capacity_bytes = NEVER_MS
        """What all files may take; see `fill`."""
        self.done: Counter[str] = Counter()
        """How often each verb succeeded, by name."""
        self.failed: Counter[str] = Counter()

    # --- what the node does -------------------------------------------------------------------------------------------

    def start(self, work: DiskWork) -> None:
        """Done at once, unless it takes time, is held, or has to wait for one that does."""
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
        """Done at once, after all that was started."""
        self._carry_out_pending(self._pending)
        if self._finished:
            self.next_ms = self._clock()
        self._carry_out(work, self._size(work.name))

    # --- what the driver of the node does -----------------------------------------------------------------------------

    def take_finished(self) -> list[DiskWork]:
        """Works that are finished by now, each once: `Node.disk_done` is to hear of them."""
        now_ms = self._clock()
        due = [pending for pending in self._pending if pending.due_ms <= now_ms]
        if due:
            self._carry_out_pending(sorted(due, key=lambda pending: pending.due_ms))
        finished, self._finished = self._finished, []
        self.next_ms = min([pending.due_ms for pending in self._pending], default=NEVER_MS)
        return finished

    # --- what tests do ------------------------------------------------------------------------------------------------

    @property
    def files(self) -> dict[str, bytearray]:
        """All files as a program finds them, by name."""
        return {name: file.data for name, file in self._entries.items()}

    def put(self, name: str, data: bytes) -> None:
        """Make a file, safe on disk."""
        self._entries[name] = _File(data, kept=True)

    def synced_bytes(self, name: str) -> int:
        """How much of a file survives a loss of power for certain."""
        file = self._entries[name]
        return min([file.synced_bytes, *[start for start, _ in file.doubtful]]) if file.kept else 0

    def flip(self, name: str, bit: int) -> None:
        """Damage one bit of a file."""
        self._entries[name].data[bit // 8] ^= 1 << bit % 8

    @property
    def used_bytes(self) -> int:
        """What all files take."""
        return sum(len(data) for data in {id(data): data for data in self.files.values()}.values())

    def fail(self, *verbs: int, error: int = errno.EIO, times: int = NEVER_MS) -> None:
        """Have verbs fail, each so many times or until `mend`; without any, those that such an error affects."""
        for verb in verbs or _AFFECTED[error]:
            self._failing[verb] = error
            self._failures_left[verb] = times

    def failing(self, verb: int) -> bool:
        """Whether a verb fails now."""
        return verb in self._failing

    def fill(self, spare_bytes: int = 0) -> None:
        """Be full but for so many bytes: what does not fit is refused, and removing files makes room."""
        self.capacity_bytes = self.used_bytes + spare_bytes

    def hold(self, *verbs: int) -> None:
        """Carry out these verbs only when told (`finish`); without any, all."""
        self.held |= set(verbs) or set(range(len(disk.VERB_NAMES)))

    def mend(self) -> None:
        """Be a good disk again; what is held is still to be let go (`finish`)."""
        self._failing.clear()
        self._failures_left.clear()
        self.capacity_bytes = NEVER_MS
        self.delay_ms.clear()
        self.jitter_ms = 0
        self.held.clear()

    @property
    def pending(self) -> list[DiskWork]:
        """What was started and is not carried out yet, oldest first."""
        return [pending.work for pending in self._pending]

    def finish(self, works: int = NEVER_MS) -> None:
        """Let go the oldest of what is under way: it is due now, and carried out when the driver asks."""
        now_ms = self._clock()
        for pending in self._pending[:works]:
            pending.due_ms = now_ms
        if self._pending:
            self.next_ms = min(self.next_ms, now_ms)

    # --- the end ------------------------------------------------------------------------------------------------------

    def crash(self) -> None:
        """The process is gone: what was written stays; what was under way is done, half done or not done."""
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
        """The process ended in the middle of a work."""
        file = self._entries.get(work.name)
        if work.verb == disk.APPEND and file is not None and disk.APPEND not in self._failing:
            data = b"".join(work.data)
            file.data += data[: self.chance.randint(0, len(data))]

    def lose_power(self) -> None:
        """The machine is off: what was not synced is gone, wholly or from some point on, or zeros stand there."""
        self.crash()
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

    # --- how it works -------------------------------------------------------------------------------------------------

    def _size(self, name: str) -> int:
        file = self._entries.get(name)
        return 0 if file is None else len(file.data)

    def _carry_out_pending(self, due: list[_Pending]) -> None:
        """Carry out what was under way. What is appended is synced by the syncs that were started after it."""
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
        """Do a work, or fail; a sync is one of the first `size` bytes."""
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
        """What goes wrong with a work; nothing mostly."""
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
                work.size = len(entries.setdefault(name, _File()).data)
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
