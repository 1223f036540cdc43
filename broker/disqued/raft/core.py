"""What all parts of a group share: its state, and which messages wait until something is synced.

A replica may crash at any time and lose what is not synced. So a message that others rely on leaves only when what it
claims is synced here: a granted vote, the request of a candidate (its term, its own vote, its log), the confirmation of
entries. Such messages are *held* with the ticket of the batch that writes it. All other messages leave at once.
Appends are among these: a leader may send entries that it has not synced, because it counts itself only when it has.

Held messages are dropped when the term rises. They are then useless, and every message may be lost anyway.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.raft.liveness import Liveness
from disqued.raft.log import Log
from disqued.raft.message import APPEND_REPLY, Message
from disqued.raft.role import FOLLOWER
from disqued.raft.stored import Stored
from disqued.raft.tuning import Tuning

_MULTIPLIER: Final = 48_271
_MODULUS: Final = (1 << 31) - 1
"""The multiplicative generator of Park and Miller. Its products fit into 64 bits."""


class Core:
    """The state of a replica in its group."""

    def __init__(self, group: i64, me: bytes, stored: Stored, liveness: Liveness, tuning: Tuning, seed: i64) -> None:
        self.group: i64 = group
        self.me: bytes = me
        self.liveness: Liveness = liveness
        self.tuning: Tuning = tuning
        self.now_ms: i64 = 0
        self.term: i64 = stored.hard.term
        self.vote: bytes = stored.hard.vote
        self.log: Log = Log(stored, tuning.memory_bytes)
        self.role: i64 = FOLLOWER
        self.leader: bytes = b""
        self.committed: i64 = stored.snapshot.index
        self.outbox: list[Message] = []
        self.held: list[Message] = []
        self._held_for: list[i64] = []
        """The tickets that they wait for."""
        self.ticket: i64 = 0
        """Of the last batch."""
        self.synced: i64 = 0
        """The last ticket that is synced."""
        self.hard_ticket: i64 = 0
        """Of the batch with the present term and vote; 0 if they are as recovered."""
        self.election_due_ms: i64 = 0
        """When to ask for votes; 0 for never, as while a leader is heard."""
        self._seed: i64 = seed
        self._attempts: i64 = 0

    @property
    def is_voter(self) -> bool:
        """Whether this replica is a voter by the newest members that it knows."""
        return self.me in self.log.members.voters

    def follows_live_leader(self) -> bool:
        """Whether this replica has a leader whose node was heard, and which does not deny that it leads."""
        leader = self.leader
        return (
            leader != b""
            and leader != self.me
            and self.liveness.heard(leader)
            and not self.liveness.denies(leader, self.group, self.term)
        )

    # --- state --------------------------------------------------------------------------------------------------------

    def set_hard(self, term: i64, vote: bytes) -> None:
        """Change term or vote; the next batch writes them."""
        if term > self.term:
            self.held = []
            self._held_for = []
        self.term = term
        self.vote = vote
        self.hard_ticket = self.ticket + 1

    def follow(self, term: i64, leader: bytes) -> None:
        """Become a follower in a term that is not below the present one, of a leader if one is known."""
        if term > self.term:
            self.set_hard(term, b"")
        self.role = FOLLOWER
        self.leader = leader
        if leader:
            self.election_due_ms = 0
        elif self.election_due_ms == 0:
            self.wait_for_election()

    def wait_for_election(self) -> None:
        """Ask for votes after the election timeout, unless a leader is found before."""
        self.election_due_ms = self.now_ms + self.tuning.election_ms + self.jitter() if self.is_voter else 0

    def jitter(self) -> i64:
        """Draw a time from 0 to `Tuning.jitter_ms`, so that replicas and groups do not ask all at once."""
        self._attempts += 1
        state: i64 = 1
        for part in (self._seed, self.group, self.term, self._attempts):
            state = (state * _MULTIPLIER + part % _MODULUS + 1) % _MODULUS
        state = state * _MULTIPLIER % _MODULUS
        return state % (self.tuning.jitter_ms + 1)

    def commit(self, index: i64) -> None:
        """Raise the commit index."""
        assert self.committed <= index <= self.log.last
        self.committed = index

    # --- messages -----------------------------------------------------------------------------------------------------

    def message(self, kind: i64, to: bytes) -> Message:
        """Make a message of the present term."""
        return Message(kind, self.me, to, self.term)

    def send(self, message: Message) -> None:
        """Send a message at once."""
        self.outbox.append(message)

    def send_synced(self, message: Message, index: i64) -> None:
        """Send a message when term, vote and the entries up to an index are synced."""
        ticket: i64 = max(self.hard_ticket, self.log.ticket_of(index, self.ticket + 1))
        if ticket <= self.synced:
            self.outbox.append(message)
            return
        self.held.append(message)
        self._held_for.append(ticket)

    def release(self) -> list[Message]:
        """Return the held messages for which everything is synced, in their order."""
        if not self.held or min(self._held_for) > self.synced:
            return []
        free: list[Message] = []
        for at in range(len(self.held)):
            if self._held_for[at] > self.synced:
                continue
            message = self.held[at]
            if free and message.kind == APPEND_REPLY and free[-1].kind == APPEND_REPLY and free[-1].to == message.to:
                # Confirmations of one sync become one: the newer one contains the older one.
                message.index = max(message.index, free[-1].index)
                free[-1] = message
            else:
                free.append(message)
        self.held = [self.held[at] for at in range(len(self.held)) if self._held_for[at] > self.synced]
        self._held_for = [ticket for ticket in self._held_for if ticket > self.synced]
        return free

    @property
    def hard_is_due(self) -> bool:
        """Whether the next batch must write the hard state."""
        return self.hard_ticket > self.ticket
