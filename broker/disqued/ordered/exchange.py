"""What the parts of the room share: the frames of a turn, what has to run at its end, and which nodes were heard.

During a turn, parts of the room add to payloads by node and message. At the end of the turn everything for one node
leaves as one frame per message, whatever the groups (`send`). What has work at the end of a turn is a `TurnWork`, which
runs once per turn however often it was asked to.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.bus import kinds
from disqued.bus.extension import NOBODY
from disqued.core.runtime.outbox import send
from disqued.core.runtime.state import NodeState
from disqued.ordered.payload import pack_messages
from disqued.orderedqueue.add import Add
from disqued.orderedqueue.effects import Ended, Move
from disqued.raft.codec import encode
from disqued.raft.entry import Entry
from disqued.raft.message import Message

NODE_BYTES: Final = 40
INCARNATION_BYTES: Final = 8
_NUMBER_BYTES: Final = 4
_NUMBER_BITS: Final = 30
"""Requests are counted from a number of 4 bytes drawn by chance, shifted by so many bits."""
SILENT_MS: Final = 1000
"""A node that was not heard for this time may be gone: requests to it are sent to others, and elections begin."""


def node_of(replica: bytes) -> bytes:
    """The ID of the node of a replica, whose identity is the ID of its node and the identity of its log."""
    return replica[:NODE_BYTES]


def client_name(node_id: bytes, incarnation: bytes, number: i64) -> bytes:
    """The name of a client as a consumer of a SINGLE queue: its node, the run of that node, its session there."""
    return node_id + b"/" + incarnation + b"/%d" % number


def log_of(replica: bytes) -> bytes:
    """The identity of the log of a replica."""
    return replica[NODE_BYTES:]


@mypyc_attr(allow_interpreted_subclasses=True)
class TurnWork:
    """Something that has work at the end of a turn."""

    def __init__(self) -> None:
        self.listed: bool = False

    def turn_ends(self) -> None:
        """Do the work."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class GroupReplica(TurnWork):
    """The replica of a group on this node, as the other parts of the room see it."""

    def accept(self, origin: bytes, number: i64, kind: i64, data: bytes) -> None:
        """Take a request of a node, of this one if `origin` is empty. The answer follows, now or later."""
        raise NotImplementedError

    def persisted(self, ticket: i64) -> None:
        """The writes of a batch of the core, and all before them, are synced."""
        raise NotImplementedError

    def fetched(self, low: i64, entries: list[Entry], purpose: i64) -> None:
        """Entries from an index on were read from the disk. Those that a snapshot has replaced are missing."""
        raise NotImplementedError

    def snapshot_saved(self, index: i64) -> None:
        """A snapshot is synced."""
        raise NotImplementedError

    def wants_snapshot(self) -> None:
        """A snapshot would free much of the disk."""
        raise NotImplementedError

    def lags(self) -> dict[bytes, int]:
        """How many entries the replicas of other nodes have not confirmed, by node; empty if this node follows."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class Answered(TurnWork):
    """Waits for answers to its requests."""

    def answer(self, number: i64, status: i64, data: bytes) -> None:
        """Take the answer to a request."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class Duties:
    """What the room does about the groups of this node beside applying their entries. This one does nothing."""

    def leads(self, group: i64) -> None:
        """This node leads a group, and its machine has applied the first entry of the term."""

    def follows(self, group: i64) -> None:
        """This node leads a group no more, or its replica is gone."""

    def moves_begin(self, group: i64, moves: list[Move]) -> None:
        """Jobs of a group that this node leads are on their way to other queues."""

    def jobs_ended(self, group: i64, ended: list[Ended]) -> None:
        """Jobs of a group ended."""

    def moved_in(self, group: i64, index: i64, add: Add) -> None:
        """A move added a job to a group."""


class Exchange:
    """The shared state of the room of one node."""

    def __init__(self, state: NodeState) -> None:
        self.state = state
        self.replicas: dict[int, GroupReplica] = {}
        """The replicas on this node, by group."""
        self.members: dict[int, tuple[bytes, ...]] = {}
        """The replicas of each group, as far as known here."""
        self.numbered: dict[int, Answered] = {}
        """The client of the group that waits for the answer to a request, by its number."""
        self.heard_ms: dict[bytes, int] = {}
        """When each node was heard last."""
        self.duties = Duties()
        self.leaders: dict[int, bytes] = {}
        """The node that leads each group, as far as replicas here know."""
        self.write_refusal = ""
        """The error to commands while the disk takes no writes; empty while it does."""
        self.turn: i64 = 0
        """The number of this turn."""
        self.later: list[TurnWork] = []
        """What continues in the next turn, because this one has done enough."""
        self._number: i64 = 0
        """The number of the last request; 0 before the first one."""
        self._work: list[TurnWork] = []
        self._out: dict[tuple[bytes, int], list[bytes]] = {}
        """Parts of payloads, by node and message."""

    @property
    def node_id(self) -> bytes:
        """The ID of this node."""
        return self.state.view.node_id

    def next_number(self) -> i64:
        """The number of a new request of this node.

        The first one is drawn by chance, so that an answer to the process before the last restart, which may come
        late, has no number of this one.
        """
        if self._number == 0:
            self._number = int.from_bytes(self.state.host.random_bytes(_NUMBER_BYTES), "big") << _NUMBER_BITS
        self._number += 1
        return self._number

    def drop(self, group: int) -> GroupReplica | None:
        """Forget the replica of a group; returns it if this node had one."""
        self.leaders.pop(group, None)
        return self.replicas.pop(group, None)

    # --- the end of a turn --------------------------------------------------------------------------------------------

    def at_turn_end(self, work: TurnWork) -> None:
        """Have something run at the end of this turn."""
        if not work.listed:
            work.listed = True
            self._work.append(work)
            self.state.ready.turn_work = True

    def next_turn(self, work: TurnWork) -> None:
        """Have something run at the end of the next turn, which comes at once."""
        self.later.append(work)

    def run_work(self) -> None:
        """Run what is listed, and what that lists."""
        while self._work:
            listed = self._work
            self._work = []
            for work in listed:
                work.listed = False
                work.turn_ends()

    # --- messages -----------------------------------------------------------------------------------------------------

    def add(self, node_id: bytes, kind: int, part: bytes) -> None:
        """Add to the payload of a message to a node."""
        key = (node_id, kind)
        parts = self._out.get(key)
        if parts is None:
            self._out[key] = [part]
            self.state.ready.turn_work = True
        else:
            parts.append(part)

    def add_messages(self, group: i64, messages: list[Message]) -> None:
        """Send messages of a replica of this node, those for one other replica together."""
        by_replica: dict[bytes, list[Message]] = {}
        for message in messages:
            by_replica.setdefault(message.to, []).append(message)
        for to, some in by_replica.items():
            self.add(node_of(to), kinds.RAFT, pack_messages(log_of(some[0].sender), log_of(to), encode(group, some)))

    def send(self) -> None:
        """Send the messages of this turn. Those to nodes without a link are lost, as all frames."""
        if not self._out:
            return
        out = self._out
        self._out = {}
        state = self.state
        for (node_id, kind), parts in out.items():
            peer = state.view.peers.get(node_id)
            if peer is not None:
                send(state, peer, state.bus.other(kind, b"".join(parts)))

    # --- who is there -------------------------------------------------------------------------------------------------

    def is_silent(self, node_id: bytes) -> bool:
        """Whether another node was not heard for a second."""
        if node_id == self.node_id:
            return False
        return self.state.now_ms - self.heard_ms.get(node_id, 0) >= SILENT_MS

    def has_ended(self, consumer: bytes) -> bool:
        """Whether the process of a client's node has ended, and another one has begun (see `client_name`)."""
        state = self.state
        node_id = node_of(consumer)
        incarnation = consumer[NODE_BYTES + 1 : NODE_BYTES + 1 + INCARNATION_BYTES]
        if node_id == self.node_id:
            return incarnation != state.incarnation
        peer = state.view.peers.get(node_id)
        return peer is not None and peer.incarnation not in {NOBODY, incarnation}
