"""The machine of an ordered queue on this node, and what the node does with its effects.

Every replica applies the same entries, so every replica knows which consumer gets which job. The replica on the node of
the consumer hands the job out. If that node has no replica, the leader sends the job (DELIVER). All others only record
the lease (`docs/architecture/ordered-queues.md`).
"""

from __future__ import annotations

import struct
from collections import deque
from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.bus import kinds
from disqued.ordered.applier import Applier
from disqued.ordered.catalog import OrderedQueue, decode_queue
from disqued.ordered.counters import BODIES_READ, DELIVERED_REMOTELY, STALE_CLAIMS
from disqued.ordered.delivered import Delivered
from disqued.ordered.deliverypayload import pack_delivery, pack_wake
from disqued.ordered.exchange import Exchange, node_of
from disqued.ordered.reading import Reading, unpack_question
from disqued.ordered.results import pack
from disqued.ordered.storage import TO_DELIVER, Storage
from disqued.orderedqueue import commands
from disqued.orderedqueue.add import ADD, add_head, is_moved
from disqued.orderedqueue.effects import NODE_DOWN, OK, STALE, Assigned, Effects
from disqued.orderedqueue.encoding import Reader
from disqued.orderedqueue.machine import Machine, restore
from disqued.orderedqueue.options import QueueOptions
from disqued.raft.entry import EMPTY, Entry

_OF_LEAVING: Final = (commands.PART, commands.NODE)
_HEAD: Final = struct.Struct(">I")
"""The length of the queue before the state of its machine."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Agents:
    """The agents of this node, as far as machines are concerned."""

    def assigned(self, group: i64, consumer: bytes, job: Delivered) -> None:
        """A job was assigned to a consumer of this node; its body may follow."""
        raise NotImplementedError

    def arrived(self, group: i64, consumer: bytes) -> None:
        """Bodies that were missing are here."""
        raise NotImplementedError

    def rejoin(self, group: i64) -> None:
        """The group has taken this node for gone: its consumers must join again."""
        raise NotImplementedError

    def abandoned(self, group: i64) -> None:
        """Bodies that are missing will not come: the consumers must join again, and ask for these jobs."""
        raise NotImplementedError

    def forget_credit(self, group: i64) -> None:
        """A new leader does not know what the consumers can take."""
        raise NotImplementedError

    def led(self, group: i64, leader: bytes) -> None:
        """`leader` leads the group now; empty if nobody does."""
        raise NotImplementedError


def queue_in(state: bytes) -> OrderedQueue:
    """The queue whose machine a state is of. Raises MalformedCatalogError."""
    (size,) = _HEAD.unpack_from(state)
    return decode_queue(state[_HEAD.size : _HEAD.size + size])


class _Missing:
    """An assigned job whose body must be read from the disk."""

    def __init__(self, job: Delivered, consumer: bytes, time_ms: i64, number: i64, *, here: bool) -> None:
        self.job = job
        self.consumer = consumer
        self.time_ms: i64 = time_ms
        self.number: i64 = number
        self.here = here
        """Whether the consumer is one of this node."""


class QueueMachine(Applier):
    """The machine of one queue."""

    def __init__(self, exchange: Exchange, storage: Storage, agents: Agents, queue: OrderedQueue) -> None:
        self._exchange = exchange
        self._storage = storage
        self._agents = agents
        self.queue = queue
        self.group: i64 = queue.group
        options = QueueOptions(queue.name, single=queue.options.single, prefetch=queue.options.prefetch)
        self.machine: Machine = Machine(options)
        self._leads: bool = False
        self._lost: set[bytes] = set()
        """Replicas that are out of service."""
        self._joined: i64 = 0
        """How many consumers had joined when it last looked at them."""
        self._missing: deque[_Missing] = deque()
        """In the order of the assignments."""
        self._fetching: bool = False
        self._fetched: i64 = 0
        """The index of the entry that is being read."""

    # --- entries ------------------------------------------------------------------------------------------------------

    def apply(self, entry: Entry, *, leads: bool, wanted: bool) -> bytes:
        """Apply an entry, and carry out its effects."""
        self._leads = leads
        if entry.kind == EMPTY:
            effects = self.machine.new_leader(entry.index, entry.time_ms)
            self._agents.forget_credit(self.group)
            self._storage.log.release(self.group, entry.index)
            for consumer in self.machine.consumers():
                self._wake(consumer.agent)
            if leads:
                self._exchange.duties.leads(self.group)
        else:
            effects = self.machine.apply(entry.index, entry.time_ms, entry.data)
            kind = entry.data[0] if entry.data else 0
            if kind == ADD and wanted:
                self.returning += 1
            if kind != ADD or effects.code != OK or effects.known is not None:
                self._storage.log.release(self.group, entry.index)
            if kind == ADD and effects.code == OK and effects.known is None and is_moved(entry.data):
                self._exchange.duties.moved_in(self.group, entry.index, add_head(entry.data))
            if kind == commands.CREDIT and wanted:
                self._count_assigned(entry.data, effects)
            elif kind == commands.JOIN and effects.code == OK:
                effects.value = self.machine.last_claim
            if kind == commands.NODE and effects.code == OK:
                self._node_returned(entry.data)
            if self.machine.joined != self._joined or kind in _OF_LEAVING or effects.parted:
                self._look_for_consumers()
            if kind == commands.NODE or effects.code == NODE_DOWN:
                self.doubts_nodes = True
        if leads and effects.code == STALE:
            self._exchange.state.counters.add(STALE_CLAIMS)
        if effects.assigned:
            self._hand_out_all(effects.assigned, entry)
            self._fetch()
        if effects.moves and leads:
            self._exchange.duties.moves_begin(self.group, effects.moves)
        if effects.ended:
            self._exchange.duties.jobs_ended(self.group, effects.ended)
        for ended in effects.ended:
            if not self._missing or not self._is_missing(ended.index):
                self._storage.log.release(self.group, ended.index)
        return pack(effects) if wanted else b""

    def _count_assigned(self, data: bytes, effects: Effects) -> None:
        """Have the result of a CREDIT say how many jobs were assigned to the consumer so far."""
        reader = Reader(data)
        reader.number()
        consumer = self.machine.consumer(commands.read_credit(reader).consumer)
        effects.value = 0 if consumer is None else consumer.assigned

    def _node_returned(self, data: bytes) -> None:
        """A node that was down for the machine is there: its consumers must join again."""
        reader = Reader(data)
        reader.number()
        node = commands.read_node(reader)
        if node.up and node.agent == self._exchange.node_id:
            self._agents.rejoin(self.group)
        elif node.up:
            self._wake(node.agent)

    def _wake(self, node_id: bytes) -> None:
        """Have the consumers of a node without a replica say again how many jobs they can take."""
        if self._leads and not self._has_replica(node_id) and node_id != self._exchange.node_id:
            self._exchange.add(node_id, kinds.DELIVER, pack_wake(int(self.group), node_id))

    def _look_for_consumers(self) -> None:
        """See whether other nodes have consumers: their replicas must learn at once what is committed."""
        own = self._exchange.node_id
        self._joined = self.machine.joined
        self.eager = any(node_of(consumer.name) != own for consumer in self.machine.consumers())

    # --- jobs ---------------------------------------------------------------------------------------------------------

    def _hand_out_all(self, assigned: list[Assigned], entry: Entry) -> None:
        """Give the jobs that an entry assigned to their consumers, with their numbers since each consumer joined."""
        left: dict[bytes, int] = {}
        for one in assigned:
            left[one.consumer] = left.get(one.consumer, 0) + 1
        for one in assigned:
            left[one.consumer] -= 1
            self._hand_out(one, entry, left[one.consumer])

    def _hand_out(self, assigned: Assigned, entry: Entry, later: i64) -> None:
        """Give a job to its consumer, if that is the task of this replica; `later` ones of the entry follow."""
        consumer = assigned.consumer
        node_id = node_of(consumer)
        here = node_id == self._exchange.node_id
        if not here and not (self._leads and not self._has_replica(node_id)):
            return
        job = Delivered(assigned)
        found = entry if entry.index == assigned.index else self._storage.log.read(self.group, assigned.index)
        known = self.machine.consumer(consumer)
        number: i64 = 0 if known is None else known.assigned - later
        missing = _Missing(job, consumer, entry.time_ms, number, here=here)
        if found is not None:
            self._fill(missing, found)
        if here:
            self._agents.assigned(self.group, consumer, job)
        elif found is not None and not self._missing:
            self._deliver(missing, found)
        if found is None:
            self._exchange.state.counters.add(BODIES_READ)
        if found is None or (self._missing and not here):
            self._missing.append(missing)

    def _has_replica(self, node_id: bytes) -> bool:
        replicas = self._exchange.members.get(int(self.group), ())
        return any(node_of(replica) == node_id and replica not in self._lost for replica in replicas)

    def lost_replica(self, replica: bytes) -> None:
        """A replica is out of service: the consumers of its node get their jobs from the leader."""
        if replica not in self._lost:
            self._lost.add(replica)
            self._wake(node_of(replica))

    def members_changed(self, voters: tuple[bytes, ...]) -> None:
        """A replica that was out of service and was removed hands out jobs when it comes back."""
        self._lost.intersection_update(voters)

    def found_replica(self, replica: bytes) -> None:
        """The replica hands out jobs again."""
        self._lost.discard(replica)

    def _is_missing(self, index: i64) -> bool:
        """Whether the body of a job that ended must still be read, because the job was delivered at most once."""
        return any(missing.job.index == index for missing in self._missing)

    def _fill(self, missing: _Missing, entry: Entry) -> None:
        missing.job.fill(entry.data, missing.time_ms)

    def _deliver(self, missing: _Missing, entry: Entry) -> None:
        """Send a job to the node of its consumer."""
        self._exchange.state.counters.add(DELIVERED_REMOTELY)
        part = pack_delivery(
            int(self.group), missing.consumer, int(missing.number), missing.job, missing.time_ms, entry.data
        )
        self._exchange.add(node_of(missing.consumer), kinds.DELIVER, part)

    def _fetch(self) -> None:
        """Read the body of the first job that misses it."""
        if self._missing and not self._fetching:
            self._fetching = True
            index = self._missing[0].job.index
            self._fetched = index
            replica = self._exchange.replicas[int(self.group)]
            self._storage.fetch(replica, self.group, index, index, TO_DELIVER)

    def body_read(self, entries: list[Entry]) -> None:
        """Bodies were read from the disk."""
        self._fetching = False
        by_index = {int(entry.index): entry for entry in entries}
        missing = self._missing
        while missing:
            first = missing[0]
            index = int(first.job.index)
            entry = by_index.get(index) or self._storage.log.read(self.group, index)
            if entry is None and index != self._fetched:
                break
            missing.popleft()
            if entry is None:  # the job has ended meanwhile, and this replica came by a snapshot
                first.job.lost = True
            else:
                self._fill(first, entry)
            if first.here:
                self._agents.arrived(self.group, first.consumer)
            elif entry is not None:
                self._deliver(first, entry)
            if not self.machine.has(first.job.index):
                self._storage.log.release(self.group, first.job.index)
        self._fetch()

    # --- the rest -----------------------------------------------------------------------------------------------------

    def read(self, question: bytes, entries: dict[int, Entry]) -> tuple[bytes, list[int]]:
        """Answer a question."""
        reading = Reading(self.queue, self.machine, entries, self._exchange.state.now_ms)
        reading.lag = max(self._exchange.replicas[int(self.group)].lags().values(), default=0)
        answer = reading.answer(unpack_question(question))
        return answer, reading.missing

    def snapshot(self) -> bytes:
        """The queue, and the state of the machine."""
        queue = self.queue.encode()
        return _HEAD.pack(len(queue)) + queue + self.machine.snapshot()

    def needed(self) -> list[int]:
        """The entries of all jobs that are not finished."""
        return self.machine.needed()

    def restore(self, state: bytes) -> None:
        """Take another state."""
        (size,) = _HEAD.unpack_from(state)
        self.machine = restore(state[_HEAD.size + size :])
        self._look_for_consumers()
        self.end()

    def end(self) -> None:
        """Read no more bodies: the consumers must ask again for these jobs."""
        self._missing.clear()
        self._agents.abandoned(self.group)

    def led(self, *, leads: bool, leader: bytes) -> None:
        """Note whether this node leads."""
        self._leads = leads
        self._agents.led(self.group, leader)
        if not leads:
            self._exchange.duties.follows(self.group)

    def watch_nodes(self) -> list[bytes]:
        """NODE for each node with consumers that is silent, or that is down for the machine and is there.

        PART for each client of a SINGLE queue whose node has started again since.
        """
        exchange = self._exchange
        down = self.machine.down
        agents = dict.fromkeys([consumer.agent for consumer in self.machine.consumers()])
        gone = [node_id for node_id in agents if node_id not in down and exchange.is_silent(node_id)]
        back = [node_id for node_id in down if not exchange.is_silent(node_id)]
        told = [commands.Node(node_id, up=False).encode() for node_id in gone]
        if self.queue.options.single:
            ended = [one.name for one in self.machine.consumers() if not one.named and exchange.has_ended(one.name)]
            told += [commands.Part(name).encode() for name in ended]
        return told + [commands.Node(node_id, up=True).encode() for node_id in back]

    def deadline_ms(self) -> i64:
        """When a TIME must be proposed."""
        return self.machine.due_ms()

    def due(self) -> bytes:
        """The command that only says what time it is."""
        return commands.encode_time()
