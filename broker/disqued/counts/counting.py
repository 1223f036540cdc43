"""Counts the jobs of queues on one node, in slices: the phases of a job are not counted where they change.

One pass through the job table counts all queues that were asked for before it began. The result is kept for a second,
so that many nodes that ask at once cost one pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from disqued.core.jobs.attributes import NAMED
from disqued.core.jobs.job import ACTIVE, POSTPONED, Job
from disqued.core.jobs.phases import DELAYED_HERE, HELD, NO_PHASE, PHASES, phase_of
from disqued.core.jobs.walk import Walk
from disqued.core.lifecycle.delays import is_delayed
from disqued.counts.waiting import waits_here

if TYPE_CHECKING:
    from collections.abc import Callable

    from disqued.core.runtime.state import NodeState

FIGURES: Final = (*PHASES, b"records")
"""What is counted: jobs by phase, then records of jobs that have ended."""
FRESH_MS: Final = 1000
"""How long a result is used again."""
MOST_WAITING: Final = 1000
"""Questions beyond this number are not answered until others are."""
_SLICE_JOBS: Final = 2000
_SLICE_NS: Final = 1_000_000
_LOOK_JOBS: Final = 64
"""The clock is read once per this many jobs."""


def _waits_only_here(job: Job) -> bool:
    """Whether no other node can speak for a job that waits here for the end of its delay.

    It can for a job that a worker gave back, and for one whose ID was given: that names no node, or another one.
    """
    return not job.flags & POSTPONED and (job.extra is None or job.extra.get(NAMED) is None)


class Totals:
    """The count of one queue."""

    def __init__(self) -> None:
        self.figures = [0] * len(PHASES)
        self.answers: list[Callable[[list[int]], None]] = []
        """Called with the figures when the pass ends."""


class _Result(NamedTuple):
    at_ms: int
    figures: list[int]


class Counting:
    """The counts of one node."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self._walk = Walk()
        self._running: dict[bytes, Totals] = {}
        """What the present pass counts, by queue."""
        self._waiting: dict[bytes, Totals] = {}
        """What the next pass will count."""
        self._answers = 0
        """How many questions wait."""
        self._recent: dict[bytes, _Result] = {}

    @property
    def active(self) -> bool:
        """Whether there is something to count."""
        return bool(self._running or self._waiting)

    def count(self, queue: bytes, answer: Callable[[list[int]], None]) -> None:
        """Have the jobs of a queue counted; `answer` is called with the figures, now or later."""
        recent = self._recent.get(queue)
        if recent is not None and int(self._state.now_ms) - recent.at_ms < FRESH_MS:
            answer(recent.figures)
        elif self._answers < MOST_WAITING:
            self._answers += 1
            self._waiting.setdefault(queue, Totals()).answers.append(answer)

    def forget_old(self) -> None:
        """Forget results that are not used any more."""
        oldest_ms = int(self._state.now_ms) - FRESH_MS
        if self._recent:
            self._recent = {queue: result for queue, result in self._recent.items() if result.at_ms > oldest_ms}

    def again(self, queue: bytes) -> None:
        """Jobs of a queue were deleted: what was counted before is not used any more."""
        self._recent.pop(queue, None)
        totals = self._running.pop(queue, None)
        if totals is not None:
            self._waiting.setdefault(queue, Totals()).answers += totals.answers

    def clear(self) -> None:
        """All jobs were dropped: count again from the beginning."""
        self._recent.clear()
        for queue, totals in self._running.items():
            self._waiting.setdefault(queue, Totals()).answers += totals.answers
        self._running = {}

    def proceed(self) -> None:
        """Count for a short time."""
        state = self._state
        if not self._running:
            if not self._waiting:
                return
            self._running, self._waiting = self._waiting, {}
            self._walk.begin()
        table = state.lifecycle.table
        running = self._running
        until_ns = state.host.stopwatch_ns() + _SLICE_NS
        for number in range(_SLICE_JOBS):
            job = self._walk.next(table)
            if job is None:
                self._end()
                return
            totals = running.get(job.queue)
            if totals is not None:
                self._add(totals, job)
            if number % _LOOK_JOBS == _LOOK_JOBS - 1 and state.host.stopwatch_ns() >= until_ns:
                return

    def _add(self, totals: Totals, job: Job) -> None:
        state = self._state
        phase = phase_of(job)
        if job.is_held:
            totals.figures[HELD] += job.state == ACTIVE and waits_here(state, job)
        elif phase == DELAYED_HERE:
            counted = _waits_only_here(job) or waits_here(state, job)
            totals.figures[phase] += counted
        elif phase != NO_PHASE:
            totals.figures[phase] += 1
        elif is_delayed(job, state.now_ms) and waits_here(state, job):
            totals.figures[DELAYED_HERE] += 1

    def _end(self) -> None:
        """The pass is over: keep and pass on the results."""
        now_ms = int(self._state.now_ms)
        done, self._running = self._running, {}
        for queue, totals in done.items():
            totals.figures.append(int(self._state.records.of_queue(queue)))
            self._answers -= len(totals.answers)
            self._recent[queue] = _Result(now_ms, totals.figures)
        for totals in done.values():
            for answer in totals.answers:
                answer(totals.figures)
