"""The machine of one queue: applies entries, and answers questions about the state.

`apply` takes the index, the time and the data of each committed entry of kind NORMAL, in order. For an entry of kind
EMPTY, the first one of a leader, call `new_leader`. Both return the effects. First the entry does what is due at its
time, then its command, then it gives waiting jobs to consumers. So TIME entries are needed only while nothing else is
proposed: when `due_ms` has come, the leader proposes one.

Data that is no valid command changes nothing but the time, on every replica. Methods under "Questions" change nothing.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from mypy_extensions import i64

from disqued.orderedqueue import add, adding, commands, joining, moving, working
from disqued.orderedqueue.consumers import Consumer
from disqued.orderedqueue.effects import MALFORMED, Effects, Move
from disqued.orderedqueue.encoding import Malformed, Reader, Writer
from disqued.orderedqueue.job import READY, Job
from disqued.orderedqueue.options import QueueOptions, Settings, read_settings
from disqued.orderedqueue.records import Record
from disqued.orderedqueue.snapshot import read_state, write_state
from disqued.orderedqueue.state import State

_DIGEST_BYTES: Final = 16
_OF_CONSUMERS: Final = (commands.JOIN, commands.PART, commands.NODE)


class Machine:
    """The machine of one queue."""

    def __init__(self, options: QueueOptions) -> None:
        self._state = State(options)

    def apply(self, index: i64, time_ms: i64, command: bytes) -> Effects:
        """Apply an entry. `index` is greater than that of the entry before; an earlier time counts as the last one."""
        effects = self._begin(index, time_ms)
        try:
            _run(self._state, command, effects)
        except Malformed:
            effects.code = MALFORMED
        self._state.assign(effects)
        return effects

    def new_leader(self, index: i64, time_ms: i64) -> Effects:
        """Apply the first entry of a leader: consumers have no credit until their agents renew it."""
        effects = self._begin(index, time_ms)
        joining.forget_credit(self._state)
        return effects

    def _begin(self, index: i64, time_ms: i64) -> Effects:
        """Note the index and the time of an entry, and do what is due."""
        state = self._state
        assert index > state.index, "entries are applied in order"
        state.index = index
        state.now_ms = max(time_ms, state.now_ms)
        effects = Effects()
        state.pass_time(effects)
        return effects

    def due_ms(self) -> i64:
        """When the leader must propose TIME unless it proposes something else; 0 for never."""
        return self._state.due_ms()

    def snapshot(self) -> bytes:
        """The state without bodies. Machines that applied the same entries have the same bytes."""
        out = Writer()
        write_state(self._state, out)
        return out.done()

    def digest(self) -> bytes:
        """A digest of the state, equal on all replicas at the same index."""
        return blake2b(self.snapshot(), digest_size=_DIGEST_BYTES).digest()

    # Questions

    @property
    def options(self) -> QueueOptions:
        """How the queue was declared."""
        return self._state.options

    @property
    def settings(self) -> Settings:
        """Its settings."""
        return self._state.settings

    @property
    def paused(self) -> i64:
        """What is stopped, by PAUSE or by the settings: `PAUSED_IN` and `PAUSED_OUT`."""
        return self._state.paused | self._state.settings.pause

    @property
    def index(self) -> i64:
        """The index of the last entry; 0 if there was none."""
        return self._state.index

    @property
    def now_ms(self) -> i64:
        """The time of the last entry."""
        return self._state.now_ms

    @property
    def length(self) -> i64:
        """How many jobs wait to be assigned, dead letters included."""
        return self._state.waiting.count

    @property
    def body_bytes(self) -> i64:
        """Bytes of their bodies."""
        return self._state.waiting.body_bytes

    @property
    def dead(self) -> i64:
        """How many of them are dead letters."""
        return self._state.waiting.dead

    @property
    def leased(self) -> i64:
        """How many jobs consumers have."""
        return self._state.leased

    @property
    def delayed(self) -> i64:
        """How many jobs wait for the end of a delay."""
        return self._state.delayed

    @property
    def added(self) -> i64:
        """How many jobs were added since the queue exists."""
        return self._state.added

    @property
    def delivered(self) -> i64:
        """How many assignments there were since the queue exists."""
        return self._state.delivered

    @property
    def record_count(self) -> i64:
        """How many records of jobs that ended are kept."""
        return len(self._state.records.by_index)

    @property
    def count(self) -> i64:
        """How many jobs the queue has in all."""
        state = self._state
        return state.waiting.count + state.leased + state.delayed + len(state.moving)

    @property
    def last_claim(self) -> i64:
        """The claim of the last assignment."""
        return self._state.last_claim

    def oldest_ms(self) -> i64:
        """When the first waiting job was added; 0 if none waits."""
        job = self._state.waiting.find(self._state.waiting.oldest())
        return 0 if job is None else job.created_ms

    def peek(self, count: i64, after: i64 = 0) -> list[int]:
        """The indexes of up to `count` waiting jobs behind the index `after`, in order.

        For a negative `count` the last ones before the index `after` (0: the last ones of all), the last one first.
        """
        waiting = self._state.waiting
        if count >= 0:
            return waiting.after(after, count)
        return waiting.before(after if after > 0 else self._state.index + 1, -count)

    def job(self, index: i64) -> Job | None:
        """A job that has not ended, to be read; None if there is none with this index."""
        return self._state.waiting.find(index)

    def has(self, index: i64) -> bool:
        """Whether the body of the entry with this index is still needed."""
        return self._state.waiting.find(index) is not None

    def record(self, index: i64) -> Record | None:
        """The record of a job that ended; None if none is kept."""
        return self._state.records.by_index.get(int(index))

    def moves(self) -> list[Move]:
        """The jobs on their way to other queues, in the order in which their moves began: a new leader sends them."""
        return [job.move for job in self._state.moving.values() if job.move is not None]

    def first_needed(self) -> i64:
        """The index of the first job that has not ended; 0 if there is none."""
        waiting = self._state.waiting
        first = waiting.oldest()
        for index, job in waiting.jobs.items():
            if job.state != READY and (first == 0 or index < first):
                first = index
        return first

    def needed(self) -> list[int]:
        """The indexes of all jobs that have not ended, in order: the entries whose bodies are needed."""
        waiting = self._state.waiting
        found = waiting.after(0, waiting.count)
        found += [index for index, job in waiting.jobs.items() if job.state != READY]
        found.sort()
        return found

    @property
    def joined(self) -> i64:
        """How many consumers have joined so far; one that comes back counts again."""
        return self._state.service.joined

    def consumers(self) -> list[Consumer]:
        """The consumers in the order of the service queue, to be read."""
        return self._state.service.in_order()

    @property
    def down(self) -> list[bytes]:
        """The nodes that are down."""
        return list(self._state.down)

    def consumer(self, name: bytes) -> Consumer | None:
        """A consumer, to be read; None if it is unknown."""
        return self._state.service.by_name.get(name)

    def active(self) -> bytes:
        """The active consumer of a SINGLE queue; empty if there is none."""
        active = self._state.service.active
        return b"" if active is None or not active.present else active.name

    def leases(self, consumer: bytes) -> list[Job]:
        """The jobs that a consumer has, in order, to be read."""
        found = self._state.service.by_name.get(consumer)
        if found is None:
            return []
        return [self._state.waiting.jobs[index] for index in sorted(found.jobs)]


def restore(data: bytes) -> Machine:
    """The machine of a snapshot. Raises Malformed."""
    reader = Reader(data)
    state = read_state(reader)
    reader.finish()
    machine = Machine(state.options)
    machine._state = state  # noqa: SLF001 -- a second constructor, which compiled classes cannot have
    return machine


def _run(state: State, command: bytes, effects: Effects) -> None:
    """Decode a command and run it. Raises Malformed before anything has changed."""
    data = Reader(command)
    kind = data.number()
    if kind == add.ADD:
        adding.add(state, command, effects)
    elif kind == commands.ACK:
        ack = commands.read_ack(data)
        data.finish()
        working.ack(state, ack, effects)
    elif kind == commands.CREDIT:
        credit = commands.read_credit(data)
        data.finish()
        joining.credit(state, credit, effects)
    elif kind == commands.NACK:
        nack = commands.read_nack(data)
        data.finish()
        working.nack(state, nack, effects)
    elif kind == commands.RENEW:
        renew = commands.read_renew(data)
        data.finish()
        working.renew(state, renew, effects)
    elif kind == commands.TIME:
        data.finish()
    elif kind in _OF_CONSUMERS:
        _run_consumers(state, kind, data, effects)
    else:
        _run_rare(state, kind, data, effects)


def _run_consumers(state: State, kind: i64, data: Reader, effects: Effects) -> None:
    """Run a command about consumers or nodes."""
    if kind == commands.JOIN:
        join = commands.read_join(data)
        data.finish()
        joining.join(state, join, effects)
    elif kind == commands.PART:
        part = commands.read_part(data)
        data.finish()
        joining.part(state, part, effects)
    else:
        node = commands.read_node(data)
        data.finish()
        joining.node(state, node, effects)


def _run_rare(state: State, kind: i64, data: Reader, effects: Effects) -> None:
    """Run a command of an administrator or about moves."""
    if kind == commands.CONF:
        settings = read_settings(data)
        data.finish()
        joining.configure(state, settings, effects)
    elif kind == commands.PAUSE:
        flags = data.number()
        data.finish()
        state.paused = flags
    elif kind == commands.PURGE:
        purge = commands.read_purge(data)
        data.finish()
        moving.purge(state, purge, effects)
    elif kind == commands.DEADSENT:
        sent = commands.read_dead_sent(data)
        data.finish()
        moving.dead_sent(state, sent, effects)
    elif kind == commands.REMOVE:
        remove = commands.read_remove(data)
        data.finish()
        moving.remove(state, remove, effects)
    elif kind == commands.MOVE:
        move = commands.read_move(data)
        data.finish()
        moving.move(state, move, effects)
    else:
        raise Malformed("the command is unknown")
