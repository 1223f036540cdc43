"""Deletes on one node the jobs that marks of purges cover, in slices (`core.queues.purges`).

A job is deleted by the node on which it waits, and from there on all of its holders, as FASTACK does it. A holder that
does not learn about that has a copy that waits for its retry time; the mark catches it when it is about to be queued.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.fates.fate import DELETED
from disqued.core.jobs.job import ACTIVE
from disqued.core.jobs.walk import Walk
from disqued.core.runtime.outbox import delete_at_holders
from disqued.counts.counters import PURGED
from disqued.counts.waiting import waits_here

if TYPE_CHECKING:
    from collections.abc import Callable

    from disqued.core.jobs.job import Job
    from disqued.core.runtime.state import NodeState
    from disqued.counts.counting import Counting

KEPT_MS: Final = 120_000
"""How long the number of deleted jobs is kept: a question about it may come later than the mark."""
_SLICE_JOBS: Final = 500
_SLICE_NS: Final = 1_000_000
_CONGESTED_MS: Final = 100


class _Purge:
    """A mark, and what became of it here."""

    def __init__(self, version: int, since_ms: int) -> None:
        self.version = version
        self.since_ms = since_ms
        self.deleted = 0
        self.begun = False
        """Whether the present or an earlier pass began after the mark arrived."""
        self.done = False
        self.answers: list[Callable[[list[int]], None]] = []


class Purging:
    """The purges of one node."""

    def __init__(self, state: NodeState, counting: Counting) -> None:
        self._state = state
        self._counting = counting
        self._purges = state.lifecycle.queues.purges
        self._walk = Walk()
        self._recent: dict[bytes, _Purge] = {}
        """The newest purge of each queue."""
        self._active = False
        """Whether a pass is under way."""
        self._another = False
        """Whether another pass follows."""
        self._not_before_ms = 0

    def next_ms(self) -> int:
        """When there is something to do; 0 for never."""
        purges = self._purges
        if purges.caught or purges.fresh or self._another or self._active:
            return max(int(self._state.now_ms), self._not_before_ms)
        return 0

    def again(self) -> None:
        """Other jobs are here: all marks are applied again."""
        self._another = self._purges.some

    def ask(self, queue: bytes, version: int, answer: Callable[[list[int]], None]) -> None:
        """Have `answer` called with the number of jobs that a purge deleted; never if it is not known here."""
        self._take_fresh()
        purge = self._recent.get(queue)
        if purge is None or purge.version != version:
            return
        if purge.done:
            answer([purge.deleted])
        else:
            purge.answers.append(answer)

    def forget_old(self) -> None:
        """Forget the numbers of old purges."""
        oldest_ms = int(self._state.now_ms) - KEPT_MS
        for queue in [queue for queue, purge in self._recent.items() if purge.done and purge.since_ms < oldest_ms]:
            del self._recent[queue]

    def proceed(self) -> None:
        """Delete some jobs."""
        state = self._state
        if self._is_congested():
            self._not_before_ms = int(state.now_ms) + _CONGESTED_MS
            return
        self._take_fresh()
        self._delete_caught()
        if not self._active:
            if not self._another:
                return
            self._another = False
            for purge in self._recent.values():
                purge.begun = True
            self._active = True
            self._walk.begin()
        table = state.lifecycle.table
        until_ns = state.host.stopwatch_ns() + _SLICE_NS
        for _ in range(_SLICE_JOBS):
            job = self._walk.next(table)
            if job is None:
                self._end()
                return
            if self._covers(job):
                self._delete(job)
                if state.host.stopwatch_ns() >= until_ns:
                    return

    def _covers(self, job: Job) -> bool:
        """Whether this node must delete a job, here and at its other holders."""
        purges = self._purges
        if job.is_held:
            return job.state == ACTIVE and purges.covers_held(job) and waits_here(self._state, job)
        return purges.covers(job)

    def _is_congested(self) -> bool:
        """Whether a link has no room for the messages about deleted jobs."""
        return any(peer.link is not None and peer.link.congested for peer in self._state.view.reachable)

    def _take_fresh(self) -> None:
        """Take note of marks that have arrived: a pass that begins from now on applies them."""
        fresh = self._purges.fresh
        if not fresh:
            return
        for queue, version in fresh.items():
            former = self._recent.get(queue)
            if former is not None and former.version >= version:
                continue
            self._recent[queue] = _Purge(version, int(self._state.now_ms))
            if former is not None:
                _finish(former)
        fresh.clear()
        self._another = True

    def _delete_caught(self) -> None:
        """Delete jobs that were about to be queued."""
        caught = self._purges.caught
        table = self._state.lifecycle.table
        for _ in range(min(_SLICE_JOBS, len(caught))):
            job = caught.pop()
            if table.get(job.id) is job:
                self._delete(job)

    def _delete(self, job: Job) -> None:
        """Delete a job here and on its other holders; its key can be used again."""
        state = self._state
        purge = self._recent.get(job.queue)
        if purge is not None:
            purge.deleted += 1
        state.lifecycle.keys.forget(job.id)
        delete_at_holders(state, job, kinds.NOT_DONE)
        state.lifecycle.end(job, DELETED)
        state.counters.add(PURGED)

    def _end(self) -> None:
        """A pass is over: answer the questions about the marks that it applied."""
        self._active = False
        for queue, purge in self._recent.items():
            if purge.begun and not purge.done:
                self._counting.again(queue)
                _finish(purge)


def _finish(purge: _Purge) -> None:
    purge.done = True
    answers, purge.answers = purge.answers, []
    for answer in answers:
        answer([purge.deleted])
