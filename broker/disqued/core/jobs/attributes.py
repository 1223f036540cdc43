"""Attributes of a job: what the original's job structure has no field for.

Most jobs have none: `Job.extra` is None. Otherwise it is a block of entries, which follows the serialised job on the
bus and on disk. A block is a mark (4 bytes), the length of its entries (4), and the entries: tag (1), length of the
value (4), value. Integers are little endian. Read as the length of a job, the mark is more than any job has, so a block
is never taken for the next job.

A *soft* attribute may be lost on a node that does not know it: the job then is a plain job there. Nodes keep soft
attributes that they do not know and pass them on. A *hard* attribute must be understood: its tag has the highest bit
set, and a node that does not know it refuses the job.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.bus.kinds import FEATURE_AFTER, FEATURE_ATTRIBUTES
from disqued.core.jobs.littleendian import read_u32
from disqued.core.jobs.parents import is_held, parents_fault, united_parents

PRIORITY: Final = 1
META: Final = 2
RETAIN: Final = 3
CLAIM: Final = 5
ORIGIN_ID: Final = 6
GROUP: Final = 7
SCHEDULE: Final = 8
ORIGIN_QUEUE: Final = 9
REASON: Final = 10
MOVES: Final = 11
ATTEMPTS: Final = 12
NAMED: Final = 13
DEAD: Final = 14
NOTE: Final = 15
DUE: Final = 16

HARD: Final = 128
"""The bit of the tags of hard attributes."""
AFTER: Final = 4 | HARD

MARK: Final = b"ATR\xff"
MARK_END: Final = 255
"""The last byte of the mark. No job is so long that its length has it."""
HEAD_BYTES: Final = 8
"""The size of a block without entries."""
_ENTRY_BYTES: Final = 5
"""The size of an entry without its value."""
MAX_BLOCK_BYTES: Final = 1 << 26
"""The longest block that is accepted: names of queues can be long."""

MAX_META_BYTES: Final = 4096
MAX_REASON_BYTES: Final = 1024
MAX_NOTE_BYTES: Final = 1024
LEAST_PRIORITY: Final = -(1 << 31)
MOST_PRIORITY: Final = (1 << 31) - 1

_ANY: Final = -1
_FIRST: Final = 0
"""Of two values for one attribute, the one that was known first stays."""
_LATER: Final = 1
"""The value that arrives replaces the one that is known."""
_GREATEST: Final = 2
"""The greater number stays."""
_UNITED: Final = 3
"""What both values say is kept."""

_NUMBERS: Final = (4, 8)
"""The sizes of values that are numbers."""
_I32: Final = Struct("<i")
_I64: Final = Struct("<q")
_U32: Final = Struct("<I")
_ENTRY: Final = Struct("<BI")
_PRIORITY_BLOCK: Final = Struct("<4sIBIi")
"""A block that has a priority alone."""
_PRIORITY_BLOCK_BYTES: Final = 17
_CLAIM_BLOCK: Final = Struct("<4sIBIq")
"""A block that has a claim alone."""
_MOST_SHARED: Final = 1024
"""So many priorities have attributes that jobs share."""


class AttributeKind:
    """One attribute: a row of the table."""

    def __init__(self, tag: int, name: str, size: int, merge: int, text: str) -> None:
        self.tag = tag
        self.name = name
        """As SHOW names it."""
        self.size = size
        """The size of its value in bytes; -1 for any."""
        self.merge = merge
        self.text = text


ATTRIBUTES: Final = (
    AttributeKind(PRIORITY, "priority", 4, _FIRST, "signed integer; jobs with a higher one are delivered first"),
    AttributeKind(META, "meta", _ANY, _FIRST, "bytes that the producer gave, at most 4 KiB"),
    AttributeKind(RETAIN, "retain", 4, _FIRST, "for how many seconds its record is kept when it has ended"),
    AttributeKind(CLAIM, "claim", 8, _GREATEST, "the greatest claim known; smaller ones are stale"),
    AttributeKind(ORIGIN_ID, "origin-id", 40, _FIRST, "the ID of the first job of the chain of moves"),
    AttributeKind(GROUP, "group", _ANY, _FIRST, "the group key that it had in an ordered queue, and gets there again"),
    AttributeKind(SCHEDULE, "schedule", _ANY, _FIRST, "the name of the schedule that added the job"),
    AttributeKind(ORIGIN_QUEUE, "origin-queue", _ANY, _FIRST, "the queue of the job that this one was made of"),
    AttributeKind(REASON, "reason", _ANY, _LATER, "why the job failed last, at most 1 KiB of text"),
    AttributeKind(MOVES, "moves", 4, _FIRST, "how many moves led to this job"),
    AttributeKind(ATTEMPTS, "attempts", 4, _FIRST, "how many attempts the previous job of the chain had"),
    AttributeKind(NAMED, "named", 0, _FIRST, "the ID was given or derived, so that two nodes may have added the job"),
    AttributeKind(DEAD, "dead-since", 8, _FIRST, "unix milliseconds since which the job is a dead letter"),
    AttributeKind(NOTE, "note", _ANY, _LATER, "the last line of progress of a worker, at most 1 KiB"),
    AttributeKind(DUE, "due-ms", 8, _FIRST, "unix milliseconds at which the schedule was due"),
    AttributeKind(AFTER, "after", _ANY, _UNITED, "the jobs that must be done before the job is delivered"),
)
_BY_TAG: Final[dict[int, AttributeKind]] = {kind.tag: kind for kind in ATTRIBUTES}


class CorruptAttributes(Exception):
    """The bytes are not a valid block; the text says why."""


@mypyc_attr(acyclic=True)
class Attributes:
    """The attributes of one job; they never change. `packed` is a valid block.

    Jobs that have nothing but a priority share the attributes of that priority (`shared`).
    """

    def __init__(self, packed: bytes, *, is_shared: bool = False) -> None:
        self.packed = packed
        self.is_shared: bool = is_shared
        self.named: bool = False
        self.dead: bool = False
        """Whether the job is a dead letter."""
        self.claimed: bool = False
        """Whether a worker got the job with a claim, here or elsewhere."""
        self.retains: bool = False
        """Whether the end of the job always leaves a record: it has RETAIN, or a move made it."""
        self.is_child: bool = False
        """Whether the job has parents."""
        self.held: bool = False
        """Whether some of them are not met, so that the job must not be delivered."""
        self.needs: i64 = FEATURE_ATTRIBUTES
        """The features that a node must have to keep all of them."""
        self.priority: i64 = 0
        at: i64 = HEAD_BYTES
        end: i64 = len(packed)
        while at < end:
            tag = packed[at]
            if tag == NAMED:
                self.named = True
            elif tag == DEAD:
                self.dead = True
            elif tag == CLAIM:
                self.claimed = True
            elif tag in (RETAIN, ORIGIN_ID):
                self.retains = True
            elif tag == PRIORITY:
                self.priority = _I32.unpack_from(packed, at + _ENTRY_BYTES)[0]
            elif tag == AFTER:
                self.is_child = True
                self.held = is_held(packed, at + _ENTRY_BYTES)
                self.needs |= FEATURE_AFTER
            at += _ENTRY_BYTES + read_u32(packed, at + 1)

    @property
    def size_bytes(self) -> i64:
        """The memory that they take: measured, with the headers of the object and of the block; 0 if shared."""
        return 0 if self.is_shared else 72 + len(self.packed)

    def get(self, tag: int) -> bytes | None:
        """The value of an attribute; None if the job does not have it."""
        packed = self.packed
        at: i64 = HEAD_BYTES
        end: i64 = len(packed)
        while at < end:
            value_at: i64 = at + _ENTRY_BYTES
            stop: i64 = value_at + read_u32(packed, at + 1)
            if packed[at] == tag:
                return packed[value_at:stop]
            at = stop
        return None

    def number(self, tag: int) -> int:
        """The value of an attribute that is a number; 0 if the job does not have it."""
        value = self.get(tag)
        return 0 if value is None else int.from_bytes(value, "little", signed=True)

    def values(self) -> dict[int, bytes]:
        """All values, by tag."""
        return dict(entries(self.packed))


_shared: Final[dict[bytes, Attributes]] = {}
"""Those that jobs share, by block: most programs use few priorities."""


def shared(packed: bytes) -> Attributes:
    """Attributes with this valid block; the same for all jobs that have this priority alone."""
    if len(packed) != _PRIORITY_BLOCK_BYTES:
        return Attributes(packed)
    found = _shared.get(packed)
    if found is None:
        if packed[HEAD_BYTES] != PRIORITY or len(_shared) >= _MOST_SHARED:
            return Attributes(packed)
        found = Attributes(packed, is_shared=True)
        _shared[packed] = found
    return found


def of_priority(priority: i64) -> Attributes | None:
    """The attributes of a job that has a priority alone; None for priority 0."""
    if priority == 0:
        return None
    return shared(_PRIORITY_BLOCK.pack(MARK, _ENTRY_BYTES + 4, PRIORITY, 4, priority))


def entries(packed: bytes) -> list[tuple[int, bytes]]:
    """The tags and the values of a valid block, in order."""
    found: list[tuple[int, bytes]] = []
    at: i64 = HEAD_BYTES
    end: i64 = len(packed)
    while at < end:
        value_at: i64 = at + _ENTRY_BYTES
        stop: i64 = value_at + read_u32(packed, at + 1)
        found.append((packed[at], packed[value_at:stop]))
        at = stop
    return found


def of(values: dict[int, bytes]) -> Attributes | None:
    """Attributes with these values by tag; None if there are none."""
    if not values:
        return None
    body = b"".join([_ENTRY.pack(tag, len(values[tag])) + values[tag] for tag in sorted(values)])
    return shared(MARK + _U32.pack(len(body)) + body)


def changed(extra: Attributes | None, changes: dict[int, bytes | None]) -> Attributes | None:
    """The attributes with other values; None as a value removes an attribute."""
    values = {} if extra is None else extra.values()
    for tag, value in changes.items():
        if value is not None:
            values[tag] = value
        else:
            values.pop(tag, None)
    return of(values)


def merged(known: Attributes | None, received: Attributes | None) -> Attributes | None:
    """The attributes of a job of which another node has these. Nothing is lost: that node may not know all of them."""
    if received is None or (known is not None and known.packed == received.packed):
        return known
    if known is None:
        return received
    values = known.values()
    for tag, value in entries(received.packed):
        kind = _BY_TAG.get(tag)
        if tag not in values or (kind is not None and _prevails(kind, value, values[tag])):
            values[tag] = value
        elif kind is not None and kind.merge == _UNITED:
            values[tag] = united_parents(values[tag], value)
    together = of(values)
    return known if together is not None and together.packed == known.packed else together


def _prevails(kind: AttributeKind, received: bytes, known: bytes) -> bool:
    """Whether a value that arrives replaces the one that is known."""
    if kind.merge == _GREATEST:
        return int.from_bytes(received, "little", signed=True) > int.from_bytes(known, "little", signed=True)
    return kind.merge == _LATER


def with_claim(extra: Attributes | None, claim: i64) -> Attributes:
    """The attributes with this claim in place of the one that they have."""
    if extra is None:
        return Attributes(_CLAIM_BLOCK.pack(MARK, _ENTRY_BYTES + 8, CLAIM, 8, claim))
    values = extra.values()
    values[CLAIM] = _I64.pack(claim)
    made = of(values)
    assert made is not None
    return made


def u32_value(number: int) -> bytes:
    """The value of RETAIN."""
    return _U32.pack(number)


def i32_value(number: int) -> bytes:
    """The value of PRIORITY, MOVES or ATTEMPTS."""
    return _I32.pack(number)


def i64_value(number: int) -> bytes:
    """The value of DEAD or CLAIM."""
    return _I64.pack(number)


def described(extra: Attributes) -> list[tuple[str, int | bytes]]:
    """The names and the values of known attributes, in the order of their tags: a number if the value is one."""
    found: list[tuple[str, int | bytes]] = []
    for tag, value in entries(extra.packed):
        kind = _BY_TAG.get(tag)
        if kind is None or tag == AFTER:
            continue
        if kind.size in _NUMBERS:
            found.append((kind.name, int.from_bytes(value, "little", signed=True)))
        else:
            found.append((kind.name, value if kind.size != 0 else 1))
    return found


def block_bytes(data: bytes, at: i64, end: i64) -> i64:
    """The size of the block at offset `at` of data that ends at `end`; 0 if there is none.

    Only the mark and the length are looked at; the block may end behind `end`.
    """
    if at + HEAD_BYTES > end or data[at + 3] != MARK_END or data[at : at + 4] != MARK:
        return 0
    return HEAD_BYTES + read_u32(data, at + 4)


def unpack_block(data: bytes, at: i64, end: i64) -> Attributes:
    """The block at offset `at`, which `block_bytes` found. Raises CorruptAttributes."""
    size = block_bytes(data, at, end)
    stop: i64 = at + size
    if stop > end or size > MAX_BLOCK_BYTES:
        raise CorruptAttributes(f"the attributes claim {size} bytes, and {end - at} are left")
    here: i64 = at + HEAD_BYTES
    last = -1
    while here < stop:
        if here + _ENTRY_BYTES > stop:
            raise CorruptAttributes("an attribute is cut off")
        tag = data[here]
        value_bytes = read_u32(data, here + 1)
        here += _ENTRY_BYTES + value_bytes
        if here > stop:
            raise CorruptAttributes(f"attribute {tag} is longer than the attributes")
        if tag <= last:
            raise CorruptAttributes(f"attribute {tag} is not behind those with smaller numbers")
        last = tag
        kind = _BY_TAG.get(tag)
        if kind is None:
            if tag & HARD:
                raise CorruptAttributes(f"attribute {tag} is not known, and a job that has it cannot be kept without")
        elif kind.size >= 0 and kind.size != value_bytes:
            raise CorruptAttributes(f"attribute {kind.name} has {value_bytes} bytes instead of {kind.size}")
        elif tag == AFTER:
            fault = parents_fault(data[here - value_bytes : here])
            if fault:
                raise CorruptAttributes(fault)
    if size == HEAD_BYTES:
        raise CorruptAttributes("there are no attributes in the block")
    return shared(data[at:stop])
