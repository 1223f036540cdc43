"""The leader of producers and workers: starts them, listens, kills a worker halfway, ends when every job is done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from disqued.demo.producer import Finished, Refused, produce
from disqued.demo.tally import Tally, WorkerTally
from disqued.demo.worker import Taken, work

PRODUCERS = 2

LARGEST_BATCH = 8
SMALLEST_BATCH = 2
"""A killed worker is to hold several jobs, unless it is late: on a slow machine they may come one by one."""

LOOK_S = 0.1
"""How often the display moves when nothing is reported."""

SILENCE_S = 60.0
"""When nobody has anything to say for so long, something is wrong."""


class CrewFailedError(Exception):
    """The work could not be done; the text says why."""


@dataclass(slots=True)
class Member:
    """A process and the line to it. A producer has no tally of its own."""

    process: SpawnProcess
    line: Connection
    tally: WorkerTally | None
    finished: bool = False

    @property
    def is_heard(self) -> bool:
        """Whether it may have something to say."""
        return not self.finished and not (self.tally is not None and self.tally.killed)


@dataclass(frozen=True, slots=True)
class Crew:
    """What is to be done, by how many, and which nodes producers and workers begin with."""

    producers_at: str
    workers_at: str
    folder: Path
    names: list[str]
    workers: int
    retry_s: int

    def run(self, tally: Tally, turn: Callable[[Tally], None]) -> None:
        """Add a job for each name and have them all done; `turn` is called as things go on.

        Raises:
            CrewFailedError: a node refused a job, a process died by itself, or nobody says anything any more.
        """
        tally.workers = [WorkerTally(f"worker {number}") for number in range(1, self.workers + 1)]
        with self._members(tally) as members:
            self._listen(members, tally, turn)

    @property
    def batch(self) -> int:
        """How many jobs a worker takes at once."""
        return max(SMALLEST_BATCH, min(LARGEST_BATCH, len(self.names) // (4 * self.workers)))

    @contextmanager
    def _members(self, tally: Tally) -> Iterator[list[Member]]:
        members = [
            self._start(worker, work, (self.workers_at,), self.folder, self.batch) for worker in tally.workers
        ] + [
            self._start(None, produce, (self.producers_at,), self.names[number::PRODUCERS], self.retry_s)
            for number in range(PRODUCERS)
        ]
        try:
            yield members
        finally:
            for member in members:
                member.process.kill()  # nothing is lost: what it holds is acknowledged, or comes back
                member.process.join()
                member.line.close()

    def _start(self, tally: WorkerTally | None, task: Callable[..., None], *arguments: Any) -> Member:
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=task, args=(*arguments, theirs), daemon=True)
        process.start()
        theirs.close()
        return Member(process, ours, tally)

    def _listen(self, members: list[Member], tally: Tally, turn: Callable[[Tally], None]) -> None:
        last_word_s = time.monotonic()
        while not tally.is_complete:
            heard = {member.line: member for member in members if member.is_heard}
            for line in wait(list(heard), LOOK_S):
                last_word_s = time.monotonic()
                _hear(heard[line], tally)  # type: ignore[index]  # `wait` returns some of the connections it was given
            if time.monotonic() - last_word_s > SILENCE_S:
                raise CrewFailedError(f"nobody said anything for {SILENCE_S:g} seconds")
            turn(tally)


def _hear(member: Member, tally: Tally) -> None:
    """One report; a worker that has just taken jobs goes on, or dies if it is the one."""
    worker = member.tally
    try:
        report = member.line.recv()
    except (EOFError, OSError) as error:
        raise CrewFailedError(f"{worker.name if worker else 'a producer'} ended by itself") from error
    if isinstance(report, Refused):
        raise CrewFailedError(f"a job could not be added: {report.reason}")
    if isinstance(report, Finished):
        member.finished = True
    elif worker is None:
        tally.added(report)
    else:
        tally.report(worker, report)
        if isinstance(report, Taken):
            _go_on(member, worker, tally)


def _go_on(member: Member, worker: WorkerTally, tally: Tally) -> None:
    """Let a worker handle what it took, or kill it."""
    if _is_victim(worker, tally):
        member.process.kill()
        member.process.join()
        worker.killed = True
    else:
        member.line.send(True)


def _is_victim(worker: WorkerTally, tally: Tally) -> bool:
    """The first worker that takes several jobs in the second half, if there is another one to go on."""
    nobody_yet = not any(other.killed for other in tally.workers)
    are_enough = len(worker.held) >= SMALLEST_BATCH or tally.is_nearly_over
    return nobody_yet and tally.is_halfway and len(tally.workers) > 1 and are_enough
