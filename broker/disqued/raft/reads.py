"""Reads that see everything committed before they began, without an entry in the log (read index).

The leader notes its commit index and asks the voters whether they still follow it. If a quorum answers, no other leader
had been elected when the round began, so nothing newer was committed then. All reads of a turn share a round; reads
that come during a round wait for the next one. A new leader starts no round before an entry of its own term is
committed, because its commit index may be old until then.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.raft.core import Core
from disqued.raft.leading import Leading
from disqued.raft.message import ROUND, ROUND_REPLY, Message
from disqued.raft.role import LEADER


class Reads:
    """The reads of a leader that are not confirmed."""

    def __init__(self, core: Core, leading: Leading) -> None:
        self._core = core
        self._leading = leading
        self.due_ms: i64 = 0
        self.results: list[tuple[i64, i64]] = []
        """For the next batch: the tokens and their indexes, 0 if refused."""
        self._term: i64 = 0
        self._waiting: list[i64] = []
        self._asked: list[i64] = []
        """The tokens of the round under way."""
        self._index: i64 = 0
        self._round: i64 = 0
        self._answered: list[bytes] = []

    def add(self, token: i64) -> bool:
        """Accept a read, if this replica leads."""
        core = self._core
        if core.role != LEADER:
            return False
        if self._term != core.term:
            self._refuse()
            self._term = core.term
        self._waiting.append(token)
        return True

    def look(self) -> None:
        """Refuse the reads of a leadership that has ended, or begin a round if reads wait."""
        core = self._core
        if not self._waiting and not self._asked:
            return
        if core.role != LEADER or core.term != self._term:
            self._refuse()
        elif self._waiting and not self._asked and self._leading.is_confirmed:
            self._asked = self._waiting
            self._waiting = []
            self._answered = []
            self._round += 1
            self._index = core.committed
            self._ask()
            self.count()

    def _refuse(self) -> None:
        self.results += [(token, 0) for token in self._asked + self._waiting]
        self._asked = []
        self._waiting = []
        self.due_ms = 0

    def _ask(self) -> None:
        core = self._core
        for replica in core.log.members.voters:
            if replica != core.me and replica not in self._answered:
                message = core.message(ROUND, replica)
                message.round = self._round
                core.send(message)
        self.due_ms = core.now_ms + core.tuning.repeat_ms

    def tick(self) -> None:
        """Ask the voters again that have not answered in time; a removed voter may have been the only one of them."""
        if self.due_ms and self._core.now_ms >= self.due_ms and self._asked:
            self._ask()
            self.count()

    def answer(self, message: Message) -> None:
        """Reply to the round of a leader."""
        reply = self._core.message(ROUND_REPLY, message.sender)
        reply.round = message.round
        self._core.send(reply)

    def reply(self, message: Message) -> None:
        """Take the answer of a voter to a round."""
        if self._asked and message.round == self._round and message.sender not in self._answered:
            self._answered.append(message.sender)
            self.count()

    def count(self) -> None:
        """Confirm the reads of the round if a quorum has answered."""
        members = self._core.log.members
        count: i64 = 0
        for replica in members.voters:
            if replica == self._core.me or replica in self._answered:
                count += 1
        if count >= members.quorum:
            self.results += [(token, self._index) for token in self._asked]
            self._asked = []
            self.due_ms = 0
