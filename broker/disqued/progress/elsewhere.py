"""LOGJOB at a node without the job: the entry is sent to all nodes, and those that have the job keep it.

The client must number its entry (CLAIM and SEQ), because this node does not know which numbers are taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.clients.session import Session
from disqued.core.runtime.outbox import send
from disqued.errors import LogFull, NoJob, NotReplicated, SequenceError, StaleClaim
from disqued.progress.kept import LogWait
from disqued.progress.payload import HAS_IT, HAS_NO_ROOM, HAS_OTHER, IS_STALE, NEW, Got, pack_entry
from disqued.resp import writer

if TYPE_CHECKING:
    from disqued.core.cluster.peer import Peer
    from disqued.core.jobs.joblog import LogLine
    from disqued.core.runtime.state import NodeState

_REPEAT_MS: Final = 1000


class ElsewhereWait(LogWait):
    """A client that waits until so many holders have its entry, or until all nodes have answered."""

    def __init__(self, session: Session, state: NodeState, job_id: bytes, line: LogLine, copies: int) -> None:
        super().__init__(session, state, job_id)
        self._line = line
        self._copies = copies
        """0 for all holders that answer."""
        self._have: set[bytes] = set()
        self._answered: set[bytes] = set()
        self._is_full = False
        self._deadline_ms = 0

    def start(self, timeout_ms: int) -> None:
        """Ask the other nodes, and begin to wait; 0 is without limit. Raises NoJob if there is none."""
        if not self._unanswered():
            raise NoJob
        now_ms = int(self.state.now_ms)
        self._deadline_ms = now_ms + timeout_ms if timeout_ms else 1 << 60
        self.begin(min(self._deadline_ms, now_ms + _REPEAT_MS))
        self._ask()

    def _unanswered(self) -> list[Peer]:
        """The nodes that may still answer."""
        peers = self.state.view.reachable
        return [peer for peer in peers if peer.features & kinds.FEATURE_LOGS and peer.id not in self._answered]

    def _ask(self) -> None:
        frame = self.state.bus.other(kinds.LOGENTRY, pack_entry(self.job_id, self._line, NEW))
        for peer in self._unanswered():
            send(self.state, peer, frame)

    def hear(self, peer: Peer, got: Got) -> None:
        """Count a holder, or end the wait if it refuses the entry."""
        if (got.claim, got.seq) != self._line[:2]:
            return
        self._answered.add(peer.id)
        if got.outcome == HAS_IT:
            self._have.add(peer.id)
        elif got.outcome == HAS_OTHER:
            self.finish(SequenceError(f"another entry has the number {got.seq} at another holder").encode())
            return
        elif got.outcome == IS_STALE:
            self.finish(StaleClaim(0).encode())
            return
        self._is_full = self._is_full or got.outcome == HAS_NO_ROOM
        if (self._copies and len(self._have) >= self._copies) or not self._unanswered():
            self._end()

    def _end(self) -> None:
        """Reply with what is known."""
        if self._have and len(self._have) >= self._copies:
            self.finish(writer.integer(len(self._have)))
        elif self._have:
            text = f"{len(self._have)} of {self._copies} holders have the entry. It stays, and can be sent again"
            self.finish(NotReplicated(text).encode())
        elif self._is_full:
            config = self.state.config
            self.finish(LogFull(config.job_log_entries, config.job_log_bytes).encode())
        elif self._unanswered():
            self.finish(NotReplicated("No holder of the job has answered. The entry can be sent again").encode())
        else:
            self.finish(NoJob().encode())

    def ring(self, state: NodeState) -> None:
        """Be content with the holders that have answered, ask the others again, or give up."""
        if state.now_ms >= self._deadline_ms or (self._have and len(self._have) >= self._copies):
            self._end()
            return
        self._ask()
        state.lifecycle.timers.arm(self, min(self._deadline_ms, int(state.now_ms) + _REPEAT_MS))
