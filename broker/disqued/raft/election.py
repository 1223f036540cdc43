"""Elections: when a replica asks for votes, when it gives one, and when it wins.

- *Pre-vote*: a replica first asks whether it would win. Nobody changes its term for this, so a replica that was
  partitioned does not depose a working leader when it returns.
- *Stickiness*: votes and pre-votes are refused while the voter hears the leader, except in a transfer of the
  leadership, and unless the leader itself asks. If the leader gets such a request it sends an append to the replica
  that asks, so that this one learns its leader, or answers with its higher term.
- A vote is given once per term, and only to a candidate whose log has at least everything that may be committed here.
- A vote counts when it is synced, also the candidate's own.
- A replica that is not a voter by its own members does not campaign. It gives votes, because the candidate's members
  may be newer.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.raft.core import Core
from disqued.raft.leading import Leading
from disqued.raft.message import PREVOTE, PREVOTE_REPLY, VOTE, VOTE_REPLY, Message
from disqued.raft.role import CANDIDATE, FOLLOWER, LEADER, PRE_CANDIDATE


class Election:
    """The votes of one replica, and those it has received."""

    def __init__(self, core: Core, leading: Leading) -> None:
        self._core = core
        self._leading = leading
        self._granted: list[bytes] = []
        self._refused: list[bytes] = []

    def tick(self) -> None:
        """Ask for votes if it is time; a replica whose leader is heard again does not."""
        core = self._core
        if core.role == FOLLOWER and core.leader:
            if core.follows_live_leader():
                core.election_due_ms = 0
            elif core.election_due_ms == 0 and core.is_voter:
                core.election_due_ms = core.now_ms + core.jitter()
        elif core.election_due_ms == 0:
            core.wait_for_election()
        if core.election_due_ms and core.now_ms >= core.election_due_ms:
            self.ask()

    def ask(self) -> None:
        """Ask for pre-votes."""
        core = self._core
        if not core.is_voter:
            core.election_due_ms = 0
            return
        core.role = PRE_CANDIDATE
        core.leader = b""
        core.wait_for_election()
        self._granted = [core.me]
        self._refused = []
        if self._has_quorum(self._granted):
            self.campaign(transfer=False)
            return
        for replica in core.log.members.voters:
            if replica != core.me:
                core.send(self._request(PREVOTE, replica, core.term + 1))

    def campaign(self, transfer: bool) -> None:
        """Ask for votes in the next term. Nothing leaves before term, vote and log are synced."""
        core = self._core
        core.set_hard(core.term + 1, core.me)
        core.role = CANDIDATE
        core.leader = b""
        core.wait_for_election()
        self._granted = []
        self._refused = []
        for replica in core.log.members.voters:
            if replica == core.me:
                core.send_synced(core.message(VOTE_REPLY, core.me), core.log.last)
            else:
                request = self._request(VOTE, replica, core.term)
                request.flag = transfer
                core.send_synced(request, core.log.last)

    def _request(self, kind: i64, replica: bytes, term: i64) -> Message:
        request = Message(kind, self._core.me, replica, term)
        request.index = self._core.log.last
        request.log_term = self._core.log.last_term
        return request

    def _has_quorum(self, replicas: list[bytes]) -> bool:
        members = self._core.log.members
        count: i64 = 0
        for replica in members.voters:
            if replica in replicas:
                count += 1
        return count >= members.quorum

    def _has_lost(self) -> bool:
        """Whether so many have refused that the others are no quorum."""
        members = self._core.log.members
        count: i64 = len(members.voters)
        for replica in members.voters:
            if replica in self._refused:
                count -= 1
        return count < members.quorum

    # --- requests -----------------------------------------------------------------------------------------------------

    def refuses_all(self, message: Message) -> bool:
        """Whether a request comes while this replica has a leader. Then its term must not be taken over."""
        core = self._core
        if self._is_resigned(message):
            core.follow(core.term, b"")
            return False
        if message.flag:
            return False
        if core.role == LEADER and not self._leading.hears_quorum():
            core.follow(core.term, b"")
        return core.role == LEADER or (core.role == FOLLOWER and core.follows_live_leader())

    def _is_resigned(self, message: Message) -> bool:
        """Whether the leader itself asks for votes of a later term: it leads this term no more.

        It cannot have asked before it led this term, so a late message says the same. Its followers then have no
        leader, and may vote, also for another replica if the log of the former leader is too short to win.
        """
        core = self._core
        return core.role == FOLLOWER and message.sender == core.leader and message.term > core.term

    def refuse(self, message: Message) -> None:
        """Refuse a request. The leader makes itself known to the replica that asks."""
        core = self._core
        if core.role == LEADER:
            self._leading.greet(message)
        reply = core.message(PREVOTE_REPLY if message.kind == PREVOTE else VOTE_REPLY, message.sender)
        reply.flag = True
        core.send(reply)

    def request(self, message: Message) -> None:
        """Answer a request for a vote or a pre-vote."""
        core = self._core
        if not self.may_win(message):
            self.refuse(message)
        elif message.kind == PREVOTE:
            reply = Message(PREVOTE_REPLY, core.me, message.sender, message.term)
            core.send(reply)
        elif core.vote != message.sender and (core.vote or core.leader):
            self.refuse(message)
        else:
            self._grant(message)

    def may_win(self, message: Message) -> bool:
        """Whether the log of a candidate has everything that may be committed in this one."""
        if message.kind == PREVOTE and message.term <= self._core.term:
            return False
        return self._core.log.is_newer(message.index, message.log_term)

    def _grant(self, message: Message) -> None:
        core = self._core
        if core.vote != message.sender:
            core.set_hard(core.term, message.sender)
        core.wait_for_election()
        core.send_synced(core.message(VOTE_REPLY, message.sender), 0)

    # --- replies ------------------------------------------------------------------------------------------------------

    def reply(self, message: Message) -> None:
        """Count a vote or a pre-vote for this replica."""
        core = self._core
        if message.kind == PREVOTE_REPLY:
            if core.role != PRE_CANDIDATE or (not message.flag and message.term != core.term + 1):
                return
        elif core.role != CANDIDATE or message.term != core.term:
            return
        votes = self._refused if message.flag else self._granted
        if message.sender not in votes:
            votes.append(message.sender)
        if self._has_quorum(self._granted):
            if core.role == PRE_CANDIDATE:
                self.campaign(transfer=False)
            else:
                self._leading.begin()
        elif self._has_lost():
            core.follow(core.term, b"")
