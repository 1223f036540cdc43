"""The disk of the server: who does what with the files, and in which order.

The event loop never waits for the disk. It appends by itself while nothing else goes on: that copies bytes into memory
of the kernel, in a tenth of the time that a thread takes. While a thread works (a sync above all, for which the kernel
may have whoever writes wait) or after a write that took long, threads append as well, until that is fast again.
Everything else is always done by threads.

Work on a file is done in order, but for one thing: what is appended does not wait for a sync. Threads are daemons,
taken when they are needed: a system call that does not return holds up neither other files nor the end of the process.
"""

from __future__ import annotations

import contextlib
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from time import monotonic_ns
from typing import Final

from disqued.core.host import disk
from disqued.core.host.disk import DiskWork
from disqued.server.files import CLOSED, OpenFile, do

DIRECT_BYTES: Final = 1 << 20
"""More at once is written by a thread: copying it would take the event loop too long."""
SLOW_NS: Final = 5_000_000
"""A write that takes longer did more than copy bytes."""


class Line:
    """What is to be done with the file of one name, in order."""

    def __init__(self, name: str) -> None:
        self.file = OpenFile(name)
        self.waiting: deque[DiskWork] = deque()
        self.busy: DiskWork | None = None
        """With a thread,"""
        self.syncing: DiskWork | None = None
        """and the sync that is with another one."""

    def lets(self, work: DiskWork) -> bool:
        """Whether it is the turn of something that waits."""
        if self.busy is not None or self.waiting[0] is not work:
            return False
        return self.syncing is None or work.verb == disk.APPEND

    def take(self) -> None:
        """The first one is with a thread."""
        work = self.waiting.popleft()
        if work.verb == disk.SYNC:
            self.syncing = work
        else:
            self.busy = work

    def end(self, work: DiskWork) -> None:
        """It is done."""
        if work.verb == disk.SYNC:
            self.syncing = None
        else:
            self.busy = None

    @property
    def over(self) -> bool:
        """Whether nothing is left to be known."""
        return self.file.descriptor == CLOSED and not self.waiting and self.busy is None and self.syncing is None


class Worker(Thread):
    """A thread that does one thing at a time."""

    def __init__(self, hand_in: Callable[[Worker, DiskWork], None]) -> None:
        super().__init__(daemon=True, name="disk")
        self._given: SimpleQueue[tuple[DiskWork, OpenFile, OpenFile | None]] = SimpleQueue()
        self._hand_in = hand_in
        self.spent_ns = 0
        """What the last one took."""

    def give(self, work: DiskWork, file: OpenFile, other: OpenFile | None) -> None:
        """Have something done."""
        self._given.put((work, file, other))

    def run(self) -> None:
        """Do what is given, for ever."""
        while True:
            work, file, other = self._given.get()
            began_ns = monotonic_ns()
            try:
                do(work, file, other)
            except Exception as bug:  # noqa: BLE001 - somebody waits to hear that it is over
                work.error = f"BUG: {bug!r}"
            self.spent_ns = monotonic_ns() - began_ns
            self._hand_in(self, work)


class FileDisk:
    """Implements `disqued.core.host.disk.Disk`.

    Names are those of files in the working directory. A file that is open stays the same when that directory changes.
    """

    def __init__(self) -> None:
        self._lines: dict[str, Line] = {}
        self._free: list[Worker] = []
        self._running = 0
        """How many works are with threads."""
        self._slow = False
        """The last write took long."""
        self._handed_in: SimpleQueue[tuple[Worker, DiskWork]] = SimpleQueue()
        self._untold: deque[DiskWork] = deque()
        """Finished while something else was waited for."""
        self._loop: AbstractEventLoop | None = None
        self._done: Callable[[DiskWork], None] | None = None

    def attach(self, loop: AbstractEventLoop, done: Callable[[DiskWork], None]) -> None:
        """From now on work can be started: `done` is called on the loop with what is finished later."""
        self._loop = loop
        self._done = done

    def start(self, work: DiskWork) -> None:
        """Begin."""
        line = self._lines.get(work.name)
        if (
            self._running == 0
            and work.verb == disk.APPEND
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
        """Do it, and wait for it; in a thread, so that signals are heard meanwhile.

        What was started before on the same file is finished then. `Node.disk_done` follows for it when the loop runs.
        """
        self._enter(work)
        while not work.finished:
            done = self._end(*self._handed_in.get())
            if done is not work:
                self._untold.append(done)
        if self._untold and self._loop is not None:
            self._loop.call_soon(self._collect)

    def _names(self, work: DiskWork) -> tuple[str, ...]:
        """In whose lines it stands."""
        return (work.name, work.other) if work.verb == disk.REPLACE else (work.name,)

    def _enter(self, work: DiskWork) -> None:
        """Have it done when its turn comes."""
        for name in self._names(work):
            line = self._lines.get(name)
            if line is None:
                self._lines[name] = line = Line(name)
            line.waiting.append(work)
        self._go_on(work.name)

    def _go_on(self, name: str) -> None:
        """Give to threads what can be done with a file now."""
        line = self._lines[name]
        while line.waiting and self._give(line.waiting[0]):
            pass

    def _give(self, work: DiskWork) -> bool:
        """Give something to a thread; False when it has to wait."""
        lines = [self._lines[name] for name in self._names(work)]
        if not all(line.lets(work) for line in lines):
            return False
        if self._free:
            worker = self._free.pop()
        else:
            worker = Worker(self._hand_in)
            worker.start()  # may be refused: then all waits for the next try
        for line in lines:
            line.take()
        self._running += 1
        worker.give(work, lines[0].file, lines[1].file if len(lines) > 1 else None)
        return True

    def _hand_in(self, worker: Worker, work: DiskWork) -> None:
        """Called by threads: it is done."""
        self._handed_in.put((worker, work))
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody wants to know
                self._loop.call_soon_threadsafe(self._collect)

    def _collect(self) -> None:
        """Tell of all that is done."""
        while self._untold:
            self._tell(self._untold.popleft())
        while not self._handed_in.empty():
            self._tell(self._end(*self._handed_in.get()))

    def _tell(self, work: DiskWork) -> None:
        if self._done is not None:
            self._done(work)

    def _end(self, worker: Worker, work: DiskWork) -> DiskWork:
        """Something is done: what stood behind it can go on."""
        self._free.append(worker)
        self._running -= 1
        if work.verb == disk.APPEND:
            self._slow = worker.spent_ns > SLOW_NS
        names = self._names(work)
        for name in names:
            self._lines[name].end(work)
        work.finished = True
        for name in names:
            self._go_on(name)
            if self._lines[name].over:
                del self._lines[name]
        return work
