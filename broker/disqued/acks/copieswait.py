"""A client that waits until enough holders of a job know that it has ended (ACKJOB COPIES)."""

from __future__ import annotations

from mypy_extensions import i64, mypyc_attr

from disqued.core.clients.session import Blocked, Session
from disqued.core.fates.fate import UNKNOWN, WAITING, Fate
from disqued.core.fates.record import united
from disqued.core.fates.watches import Watcher
from disqued.core.runtime.state import NodeState
from disqued.core.runtime.waiting import release, suspend
from disqued.errors import NotReplicated
from disqued.resp.writer import integer


@mypyc_attr(acyclic=True)
class CopiesWait(Blocked):
    """The wait of one client. A holder knows of the end if it says so (JOBTOLD).

    A confirmation (GOTACK) counts as well, unless the holder can tell which result it has.
    """

    def __init__(self, session: Session, state: NodeState, job_id: bytes, copies: i64, *, holds: bool) -> None:
        super().__init__(session)
        self._state = state
        self._ear = _Ear(self)
        self._job_id = job_id
        self._copies: i64 = copies
        self._holds: bool = holds
        """Whether this node is a holder."""
        self._knowing: set[bytes] = set()
        """The holders that know."""
        self.acknowledged: int = 0
        """The reply."""

    def watch(self) -> None:
        """Ask the holders at once."""
        self._state.watches.watch(self._job_id, self._ear)
        self._state.watches.keeper.ask_now()

    def begin(self, timeout_ms: i64) -> None:
        """Let no more requests of the client run until the end is known, or the time is over."""
        state = self._state
        if timeout_ms > 0:
            state.lifecycle.timers.arm(self, state.now_ms + timeout_ms)
        suspend(state, self)
        state.watches.note_change(self._job_id)

    def take(self, fate: Fate, node_id: bytes) -> None:
        """Count a holder that knows."""
        if fate.outcome in (UNKNOWN, WAITING) or self.session.blocked is not self:
            return
        if node_id == self._state.view.node_id and not self._holds:
            return
        if not self._has_the_result(fate):
            return
        self._knowing.add(node_id)
        if len(self._knowing) >= self._copies:
            self._finish(integer(self.acknowledged))

    def _has_the_result(self, fate: Fate) -> bool:
        """Whether a fate has the result that this node has, or one that replaces it, and no earlier one."""
        record = self._state.records.get(self._job_id)
        if record is None or record.fate.result is None:
            return True
        own = record.fate
        return fate.result is not None and (fate.result == own.result or united(own, fate) is fate)

    def ring(self, state: NodeState) -> None:
        """The time is over."""
        del state
        known = len(self._knowing)
        error = NotReplicated(
            f"{known} of {self._copies} holders know that the job has ended; it is acknowledged, and others follow"
        )
        self._state.errors.add(error.code)
        self._finish(error.encode())

    def _finish(self, reply: bytes) -> None:
        self.stop()
        self._state.ready.tell_again(self.session)
        release(self._state, self, reply)

    def stop(self) -> None:
        """Watch the job no more."""
        self._state.watches.unwatch(self._job_id, self._ear)


class _Ear(Watcher):
    """Passes what the wait is told on to it: a wait is an alarm already."""

    def __init__(self, wait: CopiesWait) -> None:
        self._wait = wait

    def told(self, job_id: bytes, fate: Fate, node_id: bytes) -> None:
        del job_id
        self._wait.take(fate, node_id)
