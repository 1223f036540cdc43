"""ACKJOB, FASTACK, NACK, ENQUEUE, WORKING and DELJOB for jobs of ordered queues: commands to the groups in their IDs.

A request may name jobs of several ordered queues, and also jobs of other queues. Each group gets its part, and the
reply is the sum. No acknowledgement is kept on a node for a job of an ordered queue: its ID says whom to ask.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.acks.ackjob import acknowledge
from disqued.acks.ackoptions import ids_end as ack_ids_end
from disqued.acks.ackoptions import may_have_options
from disqued.acks.ackoptions import parse as parse_ack
from disqued.acks.counters import JOBS_ACKED
from disqued.acks.deljob import drop
from disqued.acks.fastack import drop_everywhere
from disqued.core.clients.session import Session
from disqued.core.fates.fate import DELETED
from disqued.core.jobs.jobid import is_job_id, require_job_ids
from disqued.core.lifecycle.lifecycle import UNCOUNTED
from disqued.core.runtime.state import NodeState
from disqued.delivery.enqueue import enqueue_part
from disqued.delivery.nack import Nack as NackOptions
from disqued.delivery.nack import ids_end as nack_ids_end
from disqued.delivery.nack import parse_nack
from disqued.delivery.working import parse_working
from disqued.errors import ReplyError
from disqued.ordered.fates import KEPT_S
from disqued.ordered.jobids import group_of, index_of
from disqued.ordered.replies import error_for
from disqued.ordered.requests import COMMAND
from disqued.ordered.results import unpack
from disqued.ordered.room import OrderedRoom, ordered_of
from disqued.ordered.waiting import ClientRequest, Waiting
from disqued.orderedqueue.commands import Ack, Nack, Remove, Renew
from disqued.orderedqueue.effects import NO_JOB, OK
from disqued.resp.writer import integer

TIMEOUT_MS: Final = 10_000
"""How long a command about jobs waits for the leader of a queue."""
MOST_MIXED: Final = 100
"""How many IDs a request may have that names jobs of both types."""


class _Sum:
    """The sum over the parts of a request."""

    def __init__(self, waiting: Waiting, parts: int, counted: int) -> None:
        self.waiting = waiting
        self._left = parts
        self._counted = counted

    def add(self, count: int) -> None:
        """A part is done."""
        self._left -= 1
        self._counted += count
        if self._left == 0:
            self.waiting.finish(integer(self._counted))


class _PartRequest(ClientRequest):
    """The part of a request that one group does. It may be repeated: what it ends is ended once."""

    def __init__(self, room: OrderedRoom, total: _Sum, queue: bytes, data: bytes, *, alone: bool, acks: bool) -> None:
        deadline_ms = room.state.now_ms + TIMEOUT_MS
        super().__init__(room, total.waiting, queue, COMMAND, data, deadline_ms, repeated=True)
        self._total = total
        self._alone = alone
        """Whether the request names one job: what is wrong with it is an error then."""
        self._acks = acks

    def done(self, result: bytes) -> None:
        """Add to the sum."""
        told = unpack(result)
        if self._alone and told.code not in {OK, NO_JOB}:
            self.waiting.finish(error_for(told).encode())
            return
        count = int(told.value) if told.code == OK else 0
        if self._acks:
            self.room.state.counters.add(JOBS_ACKED, count)
        self._total.add(count)


@mypyc_attr(allow_interpreted_subclasses=True)
class _Encoder:
    """Makes the command for the jobs of one group."""

    acks = False

    def encode(self, indexes: list[int]) -> bytes:
        """The command."""
        raise NotImplementedError

    def others(self, state: NodeState, session: Session, args: list[bytes]) -> int:
        """Process the IDs of other jobs; returns what the command counts."""
        raise NotImplementedError


class _Acks(_Encoder):
    """Acknowledges jobs."""

    acks = True

    def __init__(self, claim: i64, result: bytes | None, keep_s: i64) -> None:
        self._claim: i64 = claim
        self._result = result
        self._keep_s: i64 = keep_s

    def encode(self, indexes: list[int]) -> bytes:
        """The command."""
        ack = Ack(indexes, [int(self._claim)] if self._claim else None)
        ack.result = self._result
        ack.keep_s = self._keep_s
        return ack.encode()

    def others(self, state: NodeState, session: Session, args: list[bytes]) -> int:
        """Acknowledge other jobs."""
        return acknowledge(state, session, args, 1, len(args))


class _FastAcks(_Acks):
    """Acknowledges jobs at best effort."""

    def __init__(self, kept_s: i64) -> None:
        # Without its own `__init__`, an instance of a compiled class never leaves the memory if the class inherits one.
        super().__init__(0, None, kept_s)

    def others(self, state: NodeState, session: Session, args: list[bytes]) -> int:
        """Drop other jobs on all nodes."""
        return drop_everywhere(state, session, args, 1, len(args))


class _Nacks(_Encoder):
    """Gives jobs back."""

    def __init__(self, options: NackOptions, *, at_once: bool) -> None:
        self._options = options
        self._at_once = at_once

    def encode(self, indexes: list[int]) -> bytes:
        """The command."""
        options = self._options
        nack = Nack(indexes, [int(options.claim)] if options.claim else None)
        nack.delay_ms = options.delay_ms
        nack.reason = options.reason
        nack.uncounted = options.counting == UNCOUNTED
        nack.rejected = options.dead
        nack.at_once = self._at_once
        return nack.encode()

    def others(self, state: NodeState, session: Session, args: list[bytes]) -> int:
        """Give other jobs back."""
        part = enqueue_part if self._at_once else self._options.part
        return part(state, session, args, 1, len(args))


class _Removals(_Encoder):
    """Deletes jobs."""

    def encode(self, indexes: list[int]) -> bytes:
        """The command."""
        return Remove(indexes, DELETED).encode()

    def others(self, state: NodeState, session: Session, args: list[bytes]) -> int:
        """Delete other jobs, on this node."""
        return drop(state, session, args, 1, len(args))


def split_jobs(room: OrderedRoom, args: list[bytes], end: int) -> tuple[dict[bytes, list[int]], list[bytes]] | None:
    """The indexes of the jobs of ordered queues by queue, and the other IDs; None if there are only others."""
    by_word = room.catalog.by_word
    found: dict[bytes, list[int]] = {}
    others: list[bytes] = []
    for at in range(1, end):
        job_id = args[at]
        queue = by_word.get(group_of(job_id))
        index = 0 if queue is None else int(index_of(job_id))
        if queue is None or index == 0:
            others.append(job_id)
        else:
            found.setdefault(queue.name, []).append(index)
    return (found, others) if found else None


def _send(state: NodeState, session: Session, args: list[bytes], end: int, encoder: _Encoder) -> bool:
    """Send a command to the groups of the jobs in a request; False if none of them is of an ordered queue."""
    room = ordered_of(state)
    parts = split_jobs(room, args, end)
    if parts is None:
        return False
    found, others = parts
    require_job_ids(args[:end], 1)
    if others and end > MOST_MIXED:
        raise ReplyError(f"ERR a request with jobs of ordered and of other queues takes at most {MOST_MIXED} job IDs")
    counted = encoder.others(state, session, [args[0], *others]) if others else 0
    waiting = Waiting(state, session)
    waiting.begin()
    total = _Sum(waiting, len(found), counted)
    for name, indexes in found.items():
        data = encoder.encode(indexes)
        request = _PartRequest(room, total, name, data, alone=end == 2, acks=encoder.acks)
        room.clients.client(room.catalog.by_name[name].group).submit(request)
    return True


def ackjob(state: NodeState, session: Session, args: list[bytes]) -> bool:
    """Acknowledge jobs; False if none of them is of an ordered queue."""
    end = len(args)
    claim: i64 = 0
    result: bytes | None = None
    if may_have_options(args):
        end = ack_ids_end(args)
        if end < len(args) and end == 2 and _is_ordered(state, args[1]):
            options = parse_ack(args, end)
            if options.seq >= 0:
                raise ReplyError("ERR jobs of ordered queues have no progress log, so SEQ cannot be used")
            claim = options.claim
            result = options.result
    return _send(state, session, args, end, _Acks(claim, result, _kept_s(state, args, end)))


def _kept_s(state: NodeState, args: list[bytes], end: int) -> int:
    """For how long records of the jobs are kept because somebody waits for the end of one of them."""
    watched = state.lifecycle.watched
    return KEPT_S if watched and any(args[at] in watched for at in range(1, end)) else 0


def _is_ordered(state: NodeState, job_id: bytes) -> bool:
    return bool(ordered_of(state).queue_of(job_id))


def fastack(state: NodeState, session: Session, args: list[bytes]) -> bool:
    """Acknowledge jobs: for ordered queues, FASTACK is ACKJOB."""
    return _send(state, session, args, len(args), _FastAcks(_kept_s(state, args, len(args))))


def nack(state: NodeState, session: Session, args: list[bytes]) -> bool:
    """Give jobs back."""
    end = nack_ids_end(args)
    return _send(state, session, args, end, _Nacks(parse_nack(args, end), at_once=False))


def enqueue(state: NodeState, session: Session, args: list[bytes]) -> bool:
    """Give jobs back at once."""
    return _send(state, session, args, len(args), _Nacks(NackOptions(), at_once=True))


def dequeue(state: NodeState, session: Session, args: list[bytes]) -> bool:  # noqa: ARG001 - a handler
    """Refuse: a job of an ordered queue keeps its place."""
    if split_jobs(ordered_of(state), args, len(args)) is None:
        return False
    raise ReplyError("ERR DEQUEUE cannot be used with jobs of an ordered queue, which keep their places")


def deljob(state: NodeState, session: Session, args: list[bytes]) -> bool:
    """Delete jobs."""
    return _send(state, session, args, len(args), _Removals())


class _RenewRequest(ClientRequest):
    """A WORKING."""

    def __init__(self, room: OrderedRoom, waiting: Waiting, queue: bytes, data: bytes, deadline_ms: i64) -> None:
        # Without its own `__init__`, an instance of a compiled class never leaves the memory if the class inherits one.
        super().__init__(room, waiting, queue, COMMAND, data, deadline_ms, repeated=True)

    def done(self, result: bytes) -> None:
        """Reply with the seconds of the lease."""
        told = unpack(result)
        if told.code == OK:
            self.waiting.finish(integer(int(told.value) // 1000))
        else:
            self.waiting.finish(error_for(told).encode())


def working(state: NodeState, session: Session, args: list[bytes]) -> bool:
    """Extend the lease of a job."""
    room = ordered_of(state)
    queue = room.catalog.by_word.get(group_of(args[1]))
    index = 0 if queue is None or not is_job_id(args[1]) else index_of(args[1])
    if queue is None or index == 0:
        return False
    options = parse_working(args)
    renew = Renew(index, options.claim, options.lease_ms, options.note)
    waiting = Waiting(state, session)
    waiting.begin()
    deadline_ms = state.now_ms + TIMEOUT_MS
    request = _RenewRequest(room, waiting, queue.name, renew.encode(), deadline_ms)
    room.clients.client(queue.group).submit(request)
    return True
