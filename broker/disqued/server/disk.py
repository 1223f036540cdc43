"""The disk of the server: which thread does which work on files, and in which order.

The event loop never waits for a slow disk. It appends by itself while no thread works, because copying bytes into the
page cache takes a tenth of the time of a thread. While a thread works (mainly a sync, during which the kernel may block
writers), or after a slow write, threads also append, until that is fast again.

The loop also does the syncs that are marked as `quick`, after the output of the turn has left: a sync of a fast disk
takes less time than a thread needs to begin and to report, and both are CPU time. When they take longer than a
millisecond on average, threads do them for a second, and for twice as long each time that the next attempt is slow
again. Threads do all other work.

Work on one file is done in order, except that an append does not wait for a sync. Threads are daemons and started on
demand: a system call that hangs delays neither other files nor the end of the process.
"""

from __future__ import annotations

import contextlib
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic_ns
from typing import Final

from disqued.core.host import disk
from disqued.core.host.disk import DiskWork
from disqued.server.files import CLOSED, OpenFile, do

DIRECT_BYTES: Final = 1 << 20
"""Larger writes are done by a thread: copying would block the event loop for too long."""
SIGNALS_S: Final = 0.1
"""How often signals are looked for while `perform` waits."""
SLOW_NS: Final = 5_000_000
"""A write that takes longer has waited for the disk."""
QUICK_NS: Final = 1_000_000
"""If syncs take longer on average, they are better done by threads."""
FIRST_PAUSE_NS: Final = 1_000_000_000
LONGEST_PAUSE_NS: Final = 64_000_000_000
"""How long threads do the quick syncs then."""
AVERAGED: Final = 8
"""About how many syncs are in the average."""


class Line:
    """The pending work on the file of one name, in order."""

    def __init__(self, name: str) -> None:
        self.file = OpenFile(name)
        self.waiting: deque[DiskWork] = deque()
        self.busy: DiskWork | None = None
        """The work that a thread is doing."""
        self.syncing: DiskWork | None = None
        """The sync that another thread is doing."""

    def lets(self, work: DiskWork) -> bool:
        """Whether pending work may start now."""
        if self.busy is not None or self.waiting[0] is not work:
            return False
        return self.syncing is None or work.verb == disk.APPEND

    def take(self) -> None:
        """Pass the first work to a thread."""
        work = self.waiting.popleft()
        if work.verb == disk.SYNC:
            self.syncing = work
        else:
            self.busy = work

    def end(self, work: DiskWork) -> None:
        """A thread has finished the work."""
        if work.verb == disk.SYNC:
            self.syncing = None
        else:
            self.busy = None

    @property
    def over(self) -> bool:
        """Whether the entry can be removed."""
        return self.file.descriptor == CLOSED and not self.waiting and self.busy is None and self.syncing is None


class Worker(Thread):
    """A thread that does one work at a time."""

    def __init__(self, hand_in: Callable[[Worker, DiskWork], None]) -> None:
        super().__init__(daemon=True, name="disk")
        self._given: SimpleQueue[tuple[DiskWork, OpenFile, OpenFile | None]] = SimpleQueue()
        self._hand_in = hand_in
        self.spent_ns = 0
        """How long the last work took."""

    def give(self, work: DiskWork, file: OpenFile, other: OpenFile | None) -> None:
        """Pass work to the thread."""
        self._given.put((work, file, other))

    def run(self) -> None:
        """Do work until the process ends."""
        while True:
            work, file, other = self._given.get()
            began_ns = monotonic_ns()
            try:
                do(work, file, other)
            except Exception as bug:  # noqa: BLE001 - the node waits for the end of the work
                work.error = f"BUG: {bug!r}"
            self.spent_ns = monotonic_ns() - began_ns
            self._hand_in(self, work)


class QuickSyncs:
    """Decides whether the event loop does the next quick sync."""

    def __init__(self) -> None:
        self._average_ns = 0
        self._from_ns = 0
        """Until then threads do them."""
        self._pause_ns = FIRST_PAUSE_NS

    def allowed(self, now_ns: int) -> bool:
        """Whether the loop may do one now."""
        return now_ns >= self._from_ns

    def took(self, began_ns: int, ended_ns: int) -> None:
        """The loop has done one. A single slow one does not count for more than `SLOW_NS`."""
        self._average_ns += (min(ended_ns - began_ns, SLOW_NS) - self._average_ns) // AVERAGED
        if self._average_ns > QUICK_NS:
            self._from_ns = ended_ns + self._pause_ns
            self._pause_ns = min(2 * self._pause_ns, LONGEST_PAUSE_NS)
            self._average_ns = QUICK_NS
        elif self._average_ns < QUICK_NS // 2:
            self._pause_ns = FIRST_PAUSE_NS


class FileDisk:
    """Implements `disqued.core.host.disk.Disk`.

    Names are those of files in the working directory. A file that is open stays the same when that directory changes.
    """

    def __init__(self) -> None:
        self._lines: dict[str, Line] = {}
        self._free: list[Worker] = []
        self._running = 0
        """How many works threads are doing."""
        self._slow = False
        """Whether the last write was slow."""
        self._handed_in: SimpleQueue[tuple[Worker, DiskWork]] = SimpleQueue()
        self._unreported: deque[DiskWork] = deque()
        """Work that finished while `perform` waited for other work."""
        self._quick = QuickSyncs()
        self._next: deque[tuple[DiskWork, OpenFile]] = deque()
        """Syncs that the event loop does when it has finished this turn."""
        self._loop: AbstractEventLoop | None = None
        self._done: Callable[[DiskWork], None] | None = None

    def attach(self, loop: AbstractEventLoop, done: Callable[[DiskWork], None]) -> None:
        """Allow work to be started: `done` is called on the loop with work that finishes later."""
        self._loop = loop
        self._done = done

    def start(self, work: DiskWork) -> None:
        """Start work."""
        line = self._lines.get(work.name)
        if (
            self._running == 0
            and work.verb == disk.APPEND
            and work.direct
            and not self._slow
            and line is not None
            and not line.waiting
            and sum(map(len, work.data)) <= DIRECT_BYTES
        ):
            began_ns = monotonic_ns()
            do(work, line.file, None)
            work.finished = True
            spent_ns = monotonic_ns() - began_ns
            work.spent_ms = spent_ns // 1_000_000
            self._slow = spent_ns > SLOW_NS
        else:
            self._enter(work)

    def perform(self, work: DiskWork) -> None:
        """Do work in a thread and wait for it, so that signals are handled meanwhile.

        Earlier work on the same file finishes first; `Node.disk_done` is called for it when the loop runs.
        """
        self._enter(work)
        while self._next:
            self._unreported.append(self._sync_next())
        while not work.finished:
            # A signal does not interrupt the wait if it came just before or reached another thread. Its handler runs as
            # soon as interpreted code does: in `suppress`.
            with contextlib.suppress(Empty):
                done = self._take_back(*self._handed_in.get(timeout=SIGNALS_S))
                if done is not work:
                    self._unreported.append(done)
        if self._unreported and self._loop is not None:
            self._loop.call_soon(self._collect)

    def _names(self, work: DiskWork) -> tuple[str, ...]:
        """The files that the work concerns."""
        return (work.name, work.other) if work.verb == disk.REPLACE else (work.name,)

    def _enter(self, work: DiskWork) -> None:
        """Enqueue work."""
        for name in self._names(work):
            line = self._lines.get(name)
            if line is None:
                self._lines[name] = line = Line(name)
            line.waiting.append(work)
        self._schedule(work.name)

    def _schedule(self, name: str) -> None:
        """Pass the work that may start now to threads."""
        line = self._lines[name]
        while line.waiting and self._give(line.waiting[0]):
            pass

    def _give(self, work: DiskWork) -> bool:
        """Pass work to a thread; False if it must wait."""
        lines = [self._lines[name] for name in self._names(work)]
        if not all(line.lets(work) for line in lines):
            return False
        if work.quick and self._loop is not None and self._quick.allowed(monotonic_ns()):
            lines[0].take()
            self._next.append((work, lines[0].file))
            self._loop.call_soon(self._sync_quickly)
            return True
        if self._free:
            worker = self._free.pop()
        else:
            worker = Worker(self._hand_in)
            worker.start()  # may fail: then all work waits for the next attempt
        for line in lines:
            line.take()
        self._running += 1
        worker.give(work, lines[0].file, lines[1].file if len(lines) > 1 else None)
        return True

    def _sync_quickly(self) -> None:
        """Do a sync in the event loop, and report it. `perform` may have done it already."""
        if self._next:
            self._tell(self._sync_next())

    def _sync_next(self) -> DiskWork:
        """Do the first sync that waits for the event loop."""
        work, file = self._next.popleft()
        began_ns = monotonic_ns()
        do(work, file, None)
        self._quick.took(began_ns, monotonic_ns())
        self._end(work)
        return work

    def _hand_in(self, worker: Worker, work: DiskWork) -> None:
        """Report finished work; called by threads."""
        self._handed_in.put((worker, work))
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._collect)

    def _collect(self) -> None:
        """Report all finished work to the node."""
        while self._unreported:
            self._tell(self._unreported.popleft())
        while not self._handed_in.empty():
            self._tell(self._take_back(*self._handed_in.get()))

    def _tell(self, work: DiskWork) -> None:
        if self._done is not None:
            self._done(work)

    def _take_back(self, worker: Worker, work: DiskWork) -> DiskWork:
        """A thread has finished work, and is free."""
        self._free.append(worker)
        self._running -= 1
        if work.verb == disk.APPEND and work.direct:
            self._slow = worker.spent_ns > SLOW_NS
        self._end(work)
        return work

    def _end(self, work: DiskWork) -> None:
        """Mark work as finished, and start what waited for it."""
        names = self._names(work)
        for name in names:
            self._lines[name].end(work)
        work.finished = True
        for name in names:
            self._schedule(name)
            if self._lines[name].over:
                del self._lines[name]
