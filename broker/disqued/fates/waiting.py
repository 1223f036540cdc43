"""Clients that wait for the ends of jobs (WAITJOB), or for what the nodes know about one (RESULT).

An end that is not DONE counts once every node that can answer has answered, or a second later: a node that knows the
job as expired answers first if it is this one, and another node may know that it is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.clients.session import Blocked, Session
from disqued.core.fates.fate import DEAD, DELETED, DONE, EXPIRED, UNKNOWN, Fate
from disqued.core.fates.verdict import Verdict
from disqued.core.fates.watches import Watcher
from disqued.core.runtime.waiting import release, suspend
from disqued.errors import ReplyError
from disqued.resp import writer
from disqued.resp.writer import array_header, bulk, integer

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState

MOST_JOBS: Final = 1000
"""The most jobs that one request may ask about."""
SETTLE_MS: Final = 1000
_NEVER_MS: Final = 1 << 62


def require_few_jobs(command: str, count: int) -> None:
    """Raise ReplyError for more jobs than may be asked about at once."""
    if count > MOST_JOBS:
        raise ReplyError(f"ERR {command} takes at most {MOST_JOBS} jobs")


class JobsWait(Blocked):
    """A client that waits for jobs. Subclasses say what ends the wait, and what the reply is."""

    def __init__(self, session: Session, state: NodeState, job_ids: list[bytes], timeout_ms: i64) -> None:
        super().__init__(session)
        self._state = state
        self._ear = _Ear(self)
        self.verdicts: dict[bytes, Verdict] = {job_id: Verdict() for job_id in job_ids}
        """By ID, in the order in which the client named the jobs."""
        self.ends: dict[bytes, Fate] = {}
        """How jobs ended, by ID."""
        self.settled_ms: i64 = state.now_ms + SETTLE_MS
        self.deadline_ms: i64 = state.now_ms + timeout_ms if timeout_ms > 0 else _NEVER_MS

    def begin(self) -> None:
        """Watch the jobs, and let no more requests of the client run."""
        state = self._state
        for job_id in self.verdicts:
            state.watches.watch(job_id, self._ear)
        state.lifecycle.timers.arm(self, min(self.settled_ms, self.deadline_ms))
        suspend(state, self)

    def take(self, job_id: bytes, fate: Fate, node_id: bytes) -> None:
        """Take an answer."""
        verdict = self.verdicts[job_id]
        verdict.add(fate, node_id, self._state.now_ms)
        if self.judge(job_id) and self.is_over():
            self.finish(self.reply())

    def ring(self, state: NodeState) -> None:
        """Judge again what was not settled, or end the wait because its time is over."""
        if state.now_ms >= self.settled_ms:
            for job_id in self.verdicts:
                self.judge(job_id)
        if self.is_over():
            self.finish(self.reply())
        elif state.now_ms >= self.deadline_ms:
            self.finish(self.session.null_array())
        else:
            state.lifecycle.timers.arm(self, self._next_ms())

    def _next_ms(self) -> i64:
        """When the verdicts are judged next: an answer of a node that has gone must not keep a client waiting."""
        now_ms = self._state.now_ms
        return min(self.deadline_ms, self.settled_ms if now_ms < self.settled_ms else now_ms + 10 * SETTLE_MS)

    def finish(self, reply: bytes) -> None:
        """End the wait with a reply."""
        self.stop()
        release(self._state, self, reply)

    def stop(self) -> None:
        """Watch the jobs no more."""
        for job_id in self.verdicts:
            self._state.watches.unwatch(job_id, self._ear)

    def is_settled(self, verdict: Verdict) -> bool:
        """Whether every node has answered that can, or had the time for it."""
        state = self._state
        if state.now_ms >= self.settled_ms:
            return True
        if not verdict.has_answer_of(state.view.node_id):
            return False
        for peer in state.view.reachable:
            if peer.features & kinds.FEATURE_FATES and peer.connected and not verdict.has_answer_of(peer.id):
                return False
        return True

    def has_result(self, verdict: Verdict, fate: Fate) -> bool:
        """Whether there is a result to reply with. A late answer may have an earlier one than this node itself."""
        is_there = fate.outcome == DONE and fate.result is not None
        return is_there and verdict.has_answer_of(self._state.view.node_id)

    def judge(self, job_id: bytes) -> bool:
        """Note the end of a job in `ends` if it is certain; whether that is new."""
        raise NotImplementedError

    def is_over(self) -> bool:
        """Whether the wait ends."""
        raise NotImplementedError

    def reply(self) -> bytes:
        """The reply to the client."""
        raise NotImplementedError


class EndsWait(JobsWait):
    """A client that waits until all of some jobs have ended, or any of them (WAITJOB)."""

    def __init__(
        self,
        session: Session,
        state: NodeState,
        job_ids: list[bytes],
        timeout_ms: i64,
        *,
        is_any: bool,
        with_result: bool,
    ) -> None:
        super().__init__(session, state, job_ids, timeout_ms)
        self._is_any: bool = is_any
        self._with_result: bool = with_result

    def judge(self, job_id: bytes) -> bool:
        """A job that is moved has not ended: its successor takes its place."""
        verdict = self.verdicts[job_id]
        fate = verdict.fate(self._state.now_ms)
        if fate.outcome not in (DONE, DEAD, EXPIRED, DELETED):
            self.ends.pop(job_id, None)
            return False
        is_complete = self.has_result(verdict, fate) if self._with_result else fate.outcome == DONE
        if not is_complete and not self.is_settled(verdict):
            return False
        self.ends[job_id] = fate
        return True

    def is_over(self) -> bool:
        """Whether enough jobs have ended."""
        return bool(self.ends) if self._is_any else len(self.ends) == len(self.verdicts)

    def reply(self) -> bytes:
        """The jobs that have ended, in the order of the request."""
        parts = [array_header(len(self.ends))]
        for job_id in self.verdicts:
            fate = self.ends.get(job_id)
            if fate is not None:
                parts.append(array_header(3 if self._with_result else 2) + bulk(job_id) + bulk(fate.name))
                if self._with_result:
                    parts.append(result_of(self.session, fate))
        return b"".join(parts)


class FateWait(JobsWait):
    """A client that asks what the nodes know about the ends of jobs (RESULT)."""

    def __init__(self, session: Session, state: NodeState, job_ids: list[bytes]) -> None:
        super().__init__(session, state, job_ids, 0)
        self._is_list: bool = len(job_ids) > 1

    def judge(self, job_id: bytes) -> bool:
        """Everything that is settled is an end of this wait."""
        verdict = self.verdicts[job_id]
        fate = verdict.fate(self._state.now_ms)
        if self.has_result(verdict, fate) or self.is_settled(verdict):
            self.ends[job_id] = fate
            return True
        return False

    def is_over(self) -> bool:
        """Whether the answers about all jobs are settled."""
        return len(self.ends) == len(self.verdicts)

    def reply(self) -> bytes:
        """The outcome, when the job ended, the claim, and the result; a null array if no node knows the job.

        For several jobs, a list of these in the order of the request, each with its ID in front.
        """
        if not self._is_list:
            (fate,) = self.ends.values()
            return self._row(fate, b"")
        rows = [array_header(len(self.ends))]
        rows += [self._row(self.ends[job_id], job_id) for job_id in self.verdicts]
        return b"".join(rows)

    def _row(self, fate: Fate, job_id: bytes) -> bytes:
        """What is known about one job, with its ID if there is one."""
        if fate.outcome == UNKNOWN:
            return self.session.null_array()
        begin = array_header(5) + bulk(job_id) if job_id else array_header(4)
        ended = integer(int(fate.ended_ms))
        return begin + bulk(fate.name) + ended + integer(int(fate.claim)) + result_of(self.session, fate)


class _Ear(Watcher):
    """Passes what a wait is told on to it: a wait is an alarm already."""

    def __init__(self, wait: JobsWait) -> None:
        self._wait = wait

    def told(self, job_id: bytes, fate: Fate, node_id: bytes) -> None:
        self._wait.take(job_id, fate, node_id)


def result_of(session: Session, fate: Fate) -> bytes:
    """The result of a job as a reply; null if there is none."""
    if fate.result is not None:
        return bulk(fate.result)
    return writer.NULL_BULK if session.protocol == 2 else writer.NULL_RESP3
