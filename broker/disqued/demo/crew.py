"""The workers' leader: starts them, listens, kills one halfway, and ends when every job is acknowledged."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

from disqued.client import Client, DisqueError, JobId
from disqued.demo.tally import Tally, WorkerTally
from disqued.demo.worker import QUEUE, Taken, work

ADD_AT_ONCE = 128
"""Jobs in one pipeline; they share the time at which they were added."""

LARGEST_BATCH = 8
SMALLEST_BATCH = 2
"""A killed worker must hold several jobs."""

LOOK_S = 0.1
"""How often the display moves when nothing is reported."""

SILENCE_S = 60.0
"""When no worker has anything to say for so long, something is wrong."""


class CrewFailedError(Exception):
    """The work could not be done; the text says why."""


@dataclass(slots=True)
class Member:
    """A worker process and the line to it."""

    process: SpawnProcess
    line: Connection
    tally: WorkerTally


@dataclass(frozen=True, slots=True)
class Crew:
    """What is to be done, by how many, and where the broker is."""

    nodes: tuple[str, ...]
    folder: Path
    names: list[str]
    workers: int
    retry_s: int

    def run(self, show: Callable[[Tally], None]) -> Tally:
        """Add a job for each name and have them all done; `show` is called as things go on.

        Raises:
            CrewFailedError: the broker refused a job, a worker died by itself, or nobody says anything any more.
        """
        tally = Tally([WorkerTally(f"worker {number}") for number in range(1, self.workers + 1)])
        self._add(tally)
        with self._members(tally) as members:
            self._listen(members, tally, show)
        return tally

    def _add(self, tally: Tally) -> None:
        names = iter(self.names)
        with Client(self.nodes) as client:
            while some := list(islice(names, ADD_AT_ONCE)):
                now_s = time.monotonic()
                bodies = (name.encode("utf-8", "surrogateescape") for name in some)
                tally.added(_all_added(client.add_many(QUEUE, bodies, retry_s=self.retry_s)), now_s)

    @property
    def batch(self) -> int:
        """How many jobs a worker takes at once."""
        return max(SMALLEST_BATCH, min(LARGEST_BATCH, len(self.names) // (4 * self.workers)))

    @contextmanager
    def _members(self, tally: Tally) -> Iterator[list[Member]]:
        members = [self._start(worker) for worker in tally.workers]
        try:
            yield members
        finally:
            for member in members:
                member.process.kill()  # nothing is lost: what it holds is acknowledged, or comes back
                member.process.join()
                member.line.close()

    def _start(self, tally: WorkerTally) -> Member:
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(self.nodes, self.folder, self.batch, theirs), daemon=True)
        process.start()
        theirs.close()
        return Member(process, ours, tally)

    def _listen(self, members: list[Member], tally: Tally, show: Callable[[Tally], None]) -> None:
        last_word_s = time.monotonic()
        while not tally.is_complete:
            alive = {member.line: member for member in members if not member.tally.killed}
            for line in wait(list(alive), LOOK_S):
                last_word_s = time.monotonic()
                _hear(alive[line], tally)  # type: ignore[index]  # `wait` returns some of the connections it was given
            if time.monotonic() - last_word_s > SILENCE_S:
                raise CrewFailedError(f"no worker said anything for {SILENCE_S:g} seconds")
            show(tally)


def _hear(member: Member, tally: Tally) -> None:
    """One report; a worker that has just taken jobs goes on, or dies if it is the one."""
    try:
        report = member.line.recv()
    except (EOFError, OSError) as error:
        raise CrewFailedError(f"{member.tally.name} ended by itself") from error
    tally.report(member.tally, report)
    if isinstance(report, Taken):
        if _is_victim(member, tally):
            member.process.kill()
            member.process.join()
            member.tally.killed = True
        else:
            member.line.send(True)


def _is_victim(member: Member, tally: Tally) -> bool:
    """The first worker that takes several jobs in the second half, if there is another one to go on."""
    nobody_yet = not any(worker.killed for worker in tally.workers)
    return nobody_yet and tally.is_halfway and len(tally.workers) > 1 and len(member.tally.held) >= SMALLEST_BATCH


def _all_added(results: Iterable[JobId | DisqueError]) -> Iterator[JobId]:
    for result in results:
        if isinstance(result, DisqueError):
            raise CrewFailedError(f"a job could not be added: {result}") from result
        yield result
