"""The snapshots that one replica sends and receives (`snapshots` moves one of them)."""

from __future__ import annotations

from mypy_extensions import i64

from disqued.ordered.exchange import Exchange, GroupReplica, log_of
from disqued.ordered.payload import pack_messages
from disqued.ordered.snapshotpayload import ASK, OFFER, Part
from disqued.ordered.snapshots import GIVE_UP_MS, Receiving, Sending
from disqued.ordered.storage import TO_COPY, Storage
from disqued.raft.codec import encode
from disqued.raft.entry import Entry
from disqued.raft.group import Group
from disqued.raft.message import Message


class Transfers:
    """The snapshots of one replica that are under way."""

    def __init__(self, exchange: Exchange, storage: Storage, raft: Group, replica: GroupReplica) -> None:
        self._exchange = exchange
        self._storage = storage
        self._raft = raft
        self._replica = replica
        self._group: i64 = raft.group
        self._sendings: dict[bytes, Sending] = {}
        """By follower."""
        self._receiving: Receiving | None = None

    # --- the leader ---------------------------------------------------------------------------------------------------

    def is_sending_to(self, follower: bytes) -> bool:
        """Whether a snapshot is on its way to a follower that asks for its parts."""
        sending = self._sendings.get(follower)
        return sending is not None and self._exchange.state.now_ms - sending.used_ms < GIVE_UP_MS

    def offer(self, message: Message, state: bytes, needed: list[int]) -> None:
        """Send the state of the machine, and the entries that it needs, to a follower."""
        number = int.from_bytes(self._exchange.state.host.random_bytes(6), "big")
        sending = Sending(self._exchange, self._storage, message, number, state, needed)
        self._sendings[message.to] = sending
        logs = log_of(self._raft.replica), log_of(message.to)
        sending.offer(self._group, pack_messages(*logs, encode(self._group, [message])))

    def _send_part(self, part: Part) -> None:
        for sending in self._sendings.values():
            if sending.number == part.number:
                low, high = sending.asked(part.position)
                if high > 0:
                    self._storage.fetch(self._replica, self._group, low, high, TO_COPY)
                return

    def read(self, entries: list[Entry]) -> None:
        """Entries that a snapshot needs were read from the disk."""
        for sending in self._sendings.values():
            sending.read(entries)

    def give_up(self) -> None:
        """Give up what nobody asks for any more."""
        now_ms = self._exchange.state.now_ms
        for follower, sending in list(self._sendings.items()):
            if now_ms - sending.used_ms >= GIVE_UP_MS:
                del self._sendings[follower]
                self._raft.snapshot_sent(follower, 0, False)

    @property
    def give_up_ms(self) -> i64:
        """When `give_up` must be called next; 0 for never."""
        soonest: i64 = 0
        for sending in self._sendings.values():
            due_ms = sending.used_ms + GIVE_UP_MS
            if soonest == 0 or due_ms < soonest:
                soonest = due_ms
        return soonest

    # --- the follower -------------------------------------------------------------------------------------------------

    def take_part(self, part: Part, messages: list[Message]) -> None:
        """A part of a snapshot arrived, an offer of one, or a request."""
        if part.what == OFFER:
            self._receive(part, messages[0])
        elif part.what == ASK:
            self._send_part(part)
        elif self._receiving is not None and self._receiving.number == part.number:
            self._receiving.take(part)

    def _receive(self, part: Part, message: Message) -> None:
        """Begin to receive a snapshot that is ahead of this replica."""
        meta = message.snapshot
        if meta is None or message.term < self._raft.term or meta.index <= self._raft.committed:
            return
        self.stop()
        receiving = Receiving(self._exchange, self._storage, message, part.number, self._received)
        self._receiving = receiving
        receiving.begin(self._group)

    def _received(self, complete: bool) -> None:
        """A snapshot is complete, or given up. The core decides whether it takes one."""
        receiving = self._receiving
        if receiving is not None and complete:
            self._raft.step(receiving.message, self._exchange.state.now_ms)
            self._exchange.at_turn_end(self._replica)
        else:
            self._receiving = None

    def take_state(self) -> bytes:
        """The state in the snapshot that the core has taken."""
        receiving = self._receiving
        assert receiving is not None
        self._receiving = None
        return receiving.state

    def stop(self) -> None:
        """Receive no more."""
        if self._receiving is not None:
            self._receiving.stop()
            self._receiving = None
