"""The commands of the machine but ADD: what the data of an entry says.

The first byte is the kind of the command; ADD is in a module of its own (`add`). An entry has one command. The
functions `read_...` decode what follows the kind.

Every decoder raises Malformed for bytes that are no valid command.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.fates.fate import DELETED, DONE
from disqued.orderedqueue.encoding import Malformed, Reader, Writer, read_seconds, read_time_ms
from disqued.orderedqueue.options import Settings

CREDIT: Final = 2
ACK: Final = 3
NACK: Final = 4
RENEW: Final = 5
JOIN: Final = 6
PART: Final = 7
NODE: Final = 8
CONF: Final = 9
PAUSE: Final = 10
PURGE: Final = 11
TIME: Final = 12
DEADSENT: Final = 13
REMOVE: Final = 14
MOVE: Final = 15

_CLAIMS: Final = 1
_RESULT: Final = 2
_KEEP: Final = 4
"""Which fields an ACK has."""
_ALL_ACK: Final = 7
_UNCOUNTED: Final = 2
_REJECTED: Final = 4
_AT_ONCE: Final = 8
_WHY: Final = 16
_DELAYED: Final = 32
"""What a NACK says, and which fields it has."""
_ALL_NACK: Final = 63

QUEUED_PHASE: Final = 1
LEASED_PHASE: Final = 2
DELAYED_PHASE: Final = 4
DEAD_PHASE: Final = 8
"""Which jobs a PURGE deletes, with the meaning of QPURGE: waiting jobs that are no dead letters, leased ones, delayed
ones, waiting dead letters."""


class Credit:
    """Say how many more jobs a consumer can take."""

    def __init__(self, consumer: bytes, count: i64, seen: i64 = -1, *, ahead: bool = False) -> None:
        self.consumer = consumer
        self.count: i64 = count
        self.ahead = ahead
        """Whether a consumer of a SINGLE queue also gets jobs that nobody has asked for yet, as far as PREFETCH lets
        it. A job with RETRY 0 is not assigned in this way, because its assignment is its end."""
        self.seen: i64 = seen
        """How many jobs the consumer knows to have been assigned to it since it joined: those assigned later are
        subtracted from `count`. -1 if it does not say; `count` then is exact."""

    def encode(self) -> bytes:
        """The data of an entry."""
        out = Writer()
        out.number(CREDIT)
        out.text(self.consumer)
        out.number(self.count)
        out.number(self.seen + 1)
        out.flag(self.ahead)
        return out.done()


def read_credit(data: Reader) -> Credit:
    """Decode CREDIT."""
    consumer = data.text()
    count = data.number()
    seen = data.number() - 1
    return Credit(consumer, count, seen, ahead=data.flag())


class Ack:
    """Acknowledge jobs."""

    def __init__(self, indexes: list[int], claims: list[int] | None = None) -> None:
        self.indexes = indexes
        self.claims = claims
        """The claim of each job, 0 for none; None if there are none at all."""
        self.result: bytes | None = None
        """The result of the one job."""
        self.keep_s: i64 = 0
        """For how long the record must be kept at least, because somebody waits for it."""

    def encode(self) -> bytes:
        """The data of an entry."""
        out = Writer()
        fields: i64 = 0
        if self.claims is not None:
            fields |= _CLAIMS
        if self.result is not None:
            fields |= _RESULT
        if self.keep_s > 0:
            fields |= _KEEP
        out.number(ACK)
        out.number(fields)
        if self.result is not None:
            out.text(self.result)
        if fields & _KEEP:
            out.number(self.keep_s)
        _write_jobs(out, self.indexes, self.claims)
        return out.done()


def read_ack(data: Reader) -> Ack:
    """Decode ACK."""
    fields = data.number()
    if fields > _ALL_ACK:
        raise Malformed("ACK has unknown fields")
    result = data.text() if fields & _RESULT else None
    keep_s: i64 = read_seconds(data) if fields & _KEEP else 0
    indexes = _read_numbers(data)
    ack = Ack(indexes, _read_claims(data, indexes) if fields & _CLAIMS else None)
    ack.result = result
    ack.keep_s = keep_s
    return ack


def _write_jobs(out: Writer, indexes: list[int], claims: list[int] | None) -> None:
    out.number(len(indexes))
    for index in indexes:
        out.number(index)
    if claims is not None:
        assert len(claims) == len(indexes)
        for claim in claims:
            out.number(claim)


def _read_numbers(data: Reader) -> list[int]:
    found: list[int] = []
    for _ in range(data.count()):
        found.append(int(data.number()))  # noqa: PERF401 -- a comprehension compiles to slower code here
    return found


def _read_claims(data: Reader, indexes: list[int]) -> list[int]:
    return [int(data.number()) for _ in indexes]


class Nack:
    """Give jobs back."""

    def __init__(self, indexes: list[int], claims: list[int] | None = None) -> None:
        self.indexes = indexes
        self.claims = claims
        self.delay_ms: i64 = 0
        self.reason: bytes | None = None
        self.uncounted: bool = False
        """Whether it counts as no attempt."""
        self.rejected: bool = False
        """Whether the jobs become dead letters now."""
        self.at_once: bool = False
        """ENQUEUE: no back-off, and an additional delivery instead of a NACK, or nothing if the job was delayed."""

    def encode(self) -> bytes:
        """The data of an entry."""
        out = Writer()
        fields: i64 = 0
        if self.claims is not None:
            fields |= _CLAIMS
        if self.uncounted:
            fields |= _UNCOUNTED
        if self.rejected:
            fields |= _REJECTED
        if self.at_once:
            fields |= _AT_ONCE
        if self.reason is not None:
            fields |= _WHY
        if self.delay_ms > 0:
            fields |= _DELAYED
        out.number(NACK)
        out.number(fields)
        if fields & _DELAYED:
            out.number(self.delay_ms)
        if self.reason is not None:
            out.text(self.reason)
        _write_jobs(out, self.indexes, self.claims)
        return out.done()


def read_nack(data: Reader) -> Nack:
    """Decode NACK."""
    fields = data.number()
    if fields > _ALL_NACK:
        raise Malformed("NACK has unknown fields")
    delay_ms: i64 = read_time_ms(data) if fields & _DELAYED else 0
    reason = data.text() if fields & _WHY else None
    indexes = _read_numbers(data)
    nack = Nack(indexes, _read_claims(data, indexes) if fields & _CLAIMS else None)
    nack.delay_ms = delay_ms
    nack.reason = reason
    nack.uncounted = fields & _UNCOUNTED != 0
    nack.rejected = fields & _REJECTED != 0
    nack.at_once = fields & _AT_ONCE != 0
    return nack


class Renew:
    """Extend a lease (WORKING)."""

    def __init__(self, index: i64, claim: i64 = 0, lease_ms: i64 = 0, note: bytes = b"") -> None:
        self.index: i64 = index
        self.claim: i64 = claim
        self.lease_ms: i64 = lease_ms
        """The length from now on; 0 for RETRY."""
        self.note = note
        """A line of progress; empty to leave the one before."""

    def encode(self) -> bytes:
        """The data of an entry."""
        out = Writer()
        out.number(RENEW)
        out.number(self.index)
        out.number(self.claim)
        out.number(self.lease_ms)
        out.text(self.note)
        return out.done()


def read_renew(data: Reader) -> Renew:
    """Decode RENEW."""
    index = data.number()
    claim = data.number()
    lease_ms = read_time_ms(data)
    return Renew(index, claim, lease_ms, data.text())


class Join:
    """A consumer joins. One that joins again begins with no credit; it keeps its jobs."""

    def __init__(self, consumer: bytes, agent: bytes, *, named: bool = False) -> None:
        self.consumer = consumer
        self.agent = agent
        """Its node."""
        self.named = named
        """Whether it survives its connection for `consumer-timeout`."""

    def encode(self) -> bytes:
        """The data of an entry."""
        out = Writer()
        out.number(JOIN)
        out.text(self.consumer)
        out.text(self.agent)
        out.flag(self.named)
        return out.done()


def read_join(data: Reader) -> Join:
    """Decode JOIN."""
    consumer = data.text()
    agent = data.text()
    return Join(consumer, agent, named=data.flag())


class Part:
    """A consumer leaves, and its jobs return. A named one is only away: it may join again within `consumer-timeout`."""

    def __init__(self, consumer: bytes, *, away: bool = False) -> None:
        self.consumer = consumer
        self.away = away
        """Whether the connection of a named consumer was closed."""

    def encode(self) -> bytes:
        """The data of an entry."""
        out = Writer()
        out.number(PART)
        out.text(self.consumer)
        out.flag(self.away)
        return out.done()


def read_part(data: Reader) -> Part:
    """Decode PART."""
    consumer = data.text()
    return Part(consumer, away=data.flag())


class Node:
    """A node is down, or up again. Consumers of a node that is down get no jobs."""

    def __init__(self, agent: bytes, *, up: bool) -> None:
        self.agent = agent
        self.up = up

    def encode(self) -> bytes:
        """The data of an entry."""
        out = Writer()
        out.number(NODE)
        out.text(self.agent)
        out.flag(self.up)
        return out.done()


def read_node(data: Reader) -> Node:
    """Decode NODE."""
    agent = data.text()
    return Node(agent, up=data.flag())


def encode_conf(settings: Settings) -> bytes:
    """The data of an entry that sets all settings."""
    out = Writer()
    out.number(CONF)
    settings.write(out)
    return out.done()


def encode_pause(flags: i64) -> bytes:
    """The data of an entry of the command PAUSE: `PAUSED_IN` and `PAUSED_OUT`, beside those of the settings."""
    out = Writer()
    out.number(PAUSE)
    out.number(flags)
    return out.done()


def encode_time() -> bytes:
    """The data of an entry that only says what time it is."""
    return bytes((TIME,))


class Purge:
    """Delete jobs. One entry looks at a bounded number of jobs; `Effects.next_index` says where to continue."""

    def __init__(self, phases: i64, before_ms: i64 = 0, first: i64 = 0, last: i64 = 0) -> None:
        self.phases: i64 = phases
        self.before_ms: i64 = before_ms
        """Only jobs added before this time; 0 for any."""
        self.first: i64 = first
        """The index of the first job to look at."""
        self.last: i64 = last
        """The index of the last one; 0 for the last job there is."""

    def encode(self) -> bytes:
        """The data of an entry."""
        out = Writer()
        out.number(PURGE)
        out.number(self.phases)
        out.number(self.before_ms)
        out.number(self.first)
        out.number(self.last)
        return out.done()


def read_purge(data: Reader) -> Purge:
    """Decode PURGE."""
    phases = data.number()
    before_ms = data.number()
    first = data.number()
    return Purge(phases, before_ms, first, data.number())


class DeadSent:
    """The successor of a job exists in the target queue: the move is complete and the job ends."""

    def __init__(self, index: i64, successor: bytes = b"") -> None:
        self.index: i64 = index
        self.successor = successor
        """The ID of the successor, for the record."""

    def encode(self) -> bytes:
        """The data of an entry."""
        out = Writer()
        out.number(DEADSENT)
        out.number(self.index)
        out.text(self.successor)
        return out.done()


def read_dead_sent(data: Reader) -> DeadSent:
    """Decode DEADSENT."""
    index = data.number()
    return DeadSent(index, data.text())


class Remove:
    """End jobs whatever their states (DELJOB)."""

    def __init__(self, indexes: list[int], outcome: i64 = DELETED) -> None:
        self.indexes = indexes
        self.outcome: i64 = outcome

    def encode(self) -> bytes:
        """The data of an entry."""
        out = Writer()
        out.number(REMOVE)
        out.number(self.outcome)
        _write_jobs(out, self.indexes, None)
        return out.done()


def read_remove(data: Reader) -> Remove:
    """Decode REMOVE."""
    outcome = data.number()
    if not DONE <= outcome <= DELETED:
        raise Malformed("REMOVE has an unknown outcome")
    return Remove(_read_numbers(data), outcome)


class MoveJobs:
    """Send waiting and delayed jobs to another queue (MOVEJOB, REDRIVE)."""

    def __init__(
        self, indexes: list[int], target: bytes, *, keeps_counters: bool = False, redrives: bool = False
    ) -> None:
        self.indexes = indexes
        self.target = target
        self.keeps_counters = keeps_counters
        self.redrives = redrives

    def encode(self) -> bytes:
        """The data of an entry."""
        out = Writer()
        out.number(MOVE)
        out.text(self.target)
        out.flag(self.keeps_counters)
        out.flag(self.redrives)
        _write_jobs(out, self.indexes, None)
        return out.done()


def read_move(data: Reader) -> MoveJobs:
    """Decode MOVE."""
    target = data.text()
    keeps_counters = data.flag()
    redrives = data.flag()
    return MoveJobs(_read_numbers(data), target, keeps_counters=keeps_counters, redrives=redrives)
