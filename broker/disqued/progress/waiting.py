"""Clients that wait: for copies of an entry (LOGJOB), or for the entries of other holders (SHOWLOG)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.clients.session import Session
from disqued.core.jobs.joblog import JobLog
from disqued.core.runtime.outbox import send
from disqued.errors import NotReplicated, SequenceError, StaleClaim
from disqued.progress.kept import LogWait
from disqued.progress.logs import holders_with_logs
from disqued.progress.payload import ALL, HAS_IT, HAS_OTHER, IS_STALE, NEW, Got, pack_entry
from disqued.resp import writer

if TYPE_CHECKING:
    from collections.abc import Callable

    from disqued.core.cluster.peer import Peer
    from disqued.core.jobs.joblog import LogLine
    from disqued.core.runtime.state import NodeState

_REPEAT_MS: Final = 1000
ASK_MS: Final = 500
"""How long SHOWLOG waits for other holders."""


class EntryWait(LogWait):
    """A client that waits until so many holders have its entry."""

    def __init__(self, session: Session, state: NodeState, job_id: bytes, line: LogLine, copies: int) -> None:
        super().__init__(session, state, job_id)
        self._line = line
        self._copies = copies
        self._have = {state.view.node_id}
        self._deadline_ms = 0

    def start(self, timeout_ms: int) -> None:
        """Begin to wait; 0 is without limit."""
        now_ms = int(self.state.now_ms)
        self._deadline_ms = now_ms + timeout_ms if timeout_ms else 1 << 60
        self.begin(min(self._deadline_ms, now_ms + _REPEAT_MS))

    def hear(self, peer: Peer, got: Got) -> None:
        """Count a holder, or end the wait if it refuses the entry."""
        if (got.claim, got.seq) != self._line[:2]:
            return
        if got.outcome == HAS_IT:
            self._have.add(peer.id)
            if len(self._have) >= self._copies:
                self.state.ready.tell_again(self.session)  # this node may not have logged the entry yet
                self.finish(writer.integer(len(self._have)))
        elif got.outcome == HAS_OTHER:
            self.finish(SequenceError(f"another entry has the number {got.seq} at another holder").encode())
        elif got.outcome == IS_STALE:
            self.finish(StaleClaim(0).encode())

    def ring(self, state: NodeState) -> None:
        """Send the entry again to holders that did not answer, or give up."""
        job = state.lifecycle.table.get(self.job_id)
        if job is None or state.now_ms >= self._deadline_ms:
            self.finish(
                NotReplicated(
                    f"{len(self._have)} of {self._copies} holders have the entry. It stays, and can be sent again"
                ).encode()
            )
            return
        frame = state.bus.other(kinds.LOGENTRY, pack_entry(self.job_id, self._line, NEW))
        for peer in holders_with_logs(state, job):
            if peer.id not in self._have:
                send(state, peer, frame)
        state.lifecycle.timers.arm(self, min(self._deadline_ms, int(state.now_ms) + _REPEAT_MS))


class EntriesWait(LogWait):
    """A client that reads a log, and waits for the entries of other holders."""

    def __init__(
        self, session: Session, state: NodeState, job_id: bytes, asked: set[bytes], reply: Callable[[JobLog], bytes]
    ) -> None:
        super().__init__(session, state, job_id)
        self._asked = asked
        self._reply = reply
        self._collected = JobLog()

    def collect(self, line: LogLine) -> None:
        """Keep the entry for the reply."""
        config = self.state.config
        self._collected.add(line, config.job_log_entries, config.job_log_bytes)

    def hear(self, peer: Peer, got: Got) -> None:
        """Reply when all holders that were asked have sent what they have."""
        if got.outcome == ALL:
            self._asked.discard(peer.id)
            if not self._asked:
                self.finish(self._reply(self._collected))

    def ring(self, _state: NodeState) -> None:
        """Reply with what is here."""
        self.finish(self._reply(self._collected))
