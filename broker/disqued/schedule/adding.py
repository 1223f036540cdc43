"""Adds the jobs of runs, and tries again while a job cannot be added."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.clients.session import Session
from disqued.core.jobs.runs import RunOf
from disqued.core.runtime.state import NodeState
from disqued.errors import ReplyError
from disqued.schedule.definition import Definition
from disqued.schedule.known import Schedule
from disqued.schedule.sharing import Sharing

LATE_MS: Final = 60_000
"""A run may begin so late. With MISSED skip it is missed after that; a node that fails must be noticed before."""
_RETRY_MS: Final = 1000
_MOST_RETRY_MS: Final = 10_000
_MOST_DOUBLINGS: Final = 4
_MOST_PROBLEM_BYTES: Final = 200


class Run:
    """A run whose job is being added."""

    def __init__(self, schedule: Schedule, definition: Definition, due_ms: i64) -> None:
        self.schedule = schedule
        self.definition = definition
        self.due_ms: i64 = due_ms
        self.session: Session | None = None
        """Gets the reply; None while the next attempt waits."""
        self.attempts: i64 = 0
        self.next_ms: i64 = 0


class Adding:
    """The runs whose jobs are being added on one node."""

    def __init__(self, state: NodeState, sharing: Sharing) -> None:
        self._state = state
        self._sharing = sharing
        self._runs: list[Run] = []

    def start(self, schedule: Schedule, definition: Definition, due_ms: i64) -> None:
        """Add the job of a run."""
        schedule.begun_ms = due_ms
        run = Run(schedule, definition, due_ms)
        if not self._try(run):
            self._runs.append(run)

    def _try(self, run: Run) -> bool:
        """Add a job; False if that is not over yet."""
        state = self._state
        session = Session(b"", state.now_ms)
        session.flushing = True  # no driver has its connection
        definition = run.definition
        run_of = RunOf(run.schedule.name, run.due_ms, all_copies=run.attempts == 0)
        run.session = session
        try:
            state.events.job_wanted(session, definition.queue, definition.body, definition.words, run_of)
        except ReplyError as error:
            session.out.append(error.encode())
        return self._take_reply(run, session)

    def _take_reply(self, run: Run, session: Session) -> bool:
        """Look for the reply of an attempt; True if the run is over."""
        if not session.out:
            return False
        reply = session.out[0]
        schedule = run.schedule
        if reply.startswith(b"+"):
            self._sharing.fired(schedule, run.due_ms, reply[1:-2])
            return True
        now_ms = self._state.now_ms
        problem = reply[1:-2][:_MOST_PROBLEM_BYTES]
        is_late = now_ms - run.due_ms > LATE_MS and not run.definition.missed_once
        if is_late or schedule.begun_ms > run.due_ms or schedule.is_dropped:
            self._sharing.miss(schedule, run.due_ms, 1, problem)
            return True
        if schedule.runs.problem != problem:
            schedule.runs.problem = problem
            self._sharing.must_share(schedule)
        run.session = None
        run.next_ms = now_ms + min(_RETRY_MS << min(run.attempts, _MOST_DOUBLINGS), _MOST_RETRY_MS)
        run.attempts += 1
        return False

    def visit(self) -> None:
        """Look for replies, and try again."""
        if not self._runs:
            return
        left: list[Run] = []
        for run in self._runs:
            session = run.session
            if session is not None:
                is_over = self._take_reply(run, session)
            else:
                is_over = run.next_ms <= self._state.now_ms and self._try(run)
            if not is_over:
                left.append(run)
        self._runs = left
