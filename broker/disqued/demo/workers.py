"""Start the producers and workers, record their messages, and kill one worker halfway."""

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
from disqued.demo.report import Report, WorkerReport
from disqued.demo.worker import Fetched, work

PRODUCERS = 2

LARGEST_BATCH = 8
SMALLEST_BATCH = 2
"""The least number of jobs that the killed worker holds, unless the run is nearly over: a slow machine may deliver jobs
one by one."""

UPDATE_S = 0.1
"""How often the display is updated while no messages arrive."""

SILENCE_S = 60.0
"""The demonstration fails if no message arrives for this time."""


class WorkFailedError(Exception):
    """The jobs could not be processed; the text says why."""


@dataclass(slots=True)
class Member:
    """A process and the connection to it. `report` is None for a producer."""

    process: SpawnProcess
    connection: Connection
    report: WorkerReport | None
    finished: bool = False

    @property
    def is_active(self) -> bool:
        """Whether more messages are expected."""
        return not self.finished and not (self.report is not None and self.report.killed)


@dataclass(frozen=True, slots=True)
class Workers:
    """The jobs, the number of workers, and the nodes to which producers and workers connect first."""

    producers_at: str
    workers_at: str
    folder: Path
    names: list[str]
    workers: int
    retry_s: int

    def run(self, report: Report, update: Callable[[Report], None]) -> None:
        """Add a job for each name and process all of them. Calls `update` regularly.

        Raises:
            WorkFailedError: a node rejected a job, a process died unexpectedly, or no messages arrive any more.
        """
        report.workers = [WorkerReport(f"worker {number}") for number in range(1, self.workers + 1)]
        with self._members(report) as members:
            self._listen(members, report, update)

    @property
    def batch(self) -> int:
        """How many jobs a worker fetches at once."""
        return max(SMALLEST_BATCH, min(LARGEST_BATCH, len(self.names) // (4 * self.workers)))

    @contextmanager
    def _members(self, report: Report) -> Iterator[list[Member]]:
        members = [
            self._start(worker, work, (self.workers_at,), self.folder, self.batch) for worker in report.workers
        ] + [
            self._start(None, produce, (self.producers_at,), self.names[number::PRODUCERS], self.retry_s)
            for number in range(PRODUCERS)
        ]
        try:
            yield members
        finally:
            for member in members:
                member.process.kill()  # loses nothing: unacknowledged jobs are delivered again
                member.process.join()
                member.connection.close()

    def _start(self, report: WorkerReport | None, task: Callable[..., None], *arguments: Any) -> Member:
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=task, args=(*arguments, theirs), daemon=True)
        process.start()
        theirs.close()
        return Member(process, ours, report)

    def _listen(self, members: list[Member], report: Report, update: Callable[[Report], None]) -> None:
        last_message_s = time.monotonic()
        while not report.is_complete:
            active = {member.connection: member for member in members if member.is_active}
            for connection in wait(list(active), UPDATE_S):
                last_message_s = time.monotonic()
                # `wait` returns some of the connections that it was given.
                _receive(active[connection], report)  # type: ignore[index]
            if time.monotonic() - last_message_s > SILENCE_S:
                raise WorkFailedError(f"no messages from producers and workers for {SILENCE_S:g} s")
            update(report)


def _receive(member: Member, report: Report) -> None:
    """Record one message. A worker that has just fetched jobs may continue, or is killed."""
    worker = member.report
    try:
        message = member.connection.recv()
    except (EOFError, OSError) as error:
        raise WorkFailedError(f"{worker.name if worker else 'a producer'} died unexpectedly") from error
    if isinstance(message, Refused):
        raise WorkFailedError(f"a job could not be added: {message.reason}")
    if isinstance(message, Finished):
        member.finished = True
    elif worker is None:
        report.added(message)
    else:
        report.record(worker, message)
        if isinstance(message, Fetched):
            _continue_or_kill(member, worker, report)


def _continue_or_kill(member: Member, worker: WorkerReport, report: Report) -> None:
    if _is_victim(worker, report):
        member.process.kill()
        member.process.join()
        worker.killed = True
    else:
        member.connection.send(True)


def _is_victim(worker: WorkerReport, report: Report) -> bool:
    """Whether to kill this worker: the first of several that fetches a batch in the second half."""
    none_yet = not any(other.killed for other in report.workers)
    holds_enough = len(worker.held) >= SMALLEST_BATCH or report.is_nearly_over
    return none_yet and report.is_halfway and len(report.workers) > 1 and holds_enough
