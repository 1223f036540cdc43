"""The value of the attribute AFTER: the jobs that must be done before a job is delivered, its *parents*.

What happens if a parent can no longer be done (1 byte), the number of parents (1), which of them are met (8, little
endian, the lowest bit for the first one), and their IDs. A parent is *met* when it is done, or when the job runs
without it. The list never changes; parents only become met.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.jobs.littleendian import read_u32

ELSE_DEAD: Final = 0
"""The job becomes a dead letter."""
ELSE_RUN: Final = 1
"""The job no longer waits for this parent."""
ELSE_DROP: Final = 2
"""The job is deleted."""
ACTIONS: Final = (b"dead", b"run", b"drop")
"""The names of what happens, by number."""

MAX_PARENTS: Final = 64
_MET_AT: Final = 2
_IDS_AT: Final = 10
_ID_BYTES: Final = 40


def pack_parents(parents: list[bytes], action: int) -> bytes:
    """The value for these parents, none of which is met."""
    return bytes((action, len(parents))) + bytes(8) + b"".join(parents)


def parents_fault(value: bytes) -> str:
    """What is wrong with a value; empty if nothing is."""
    count = len(value) - _IDS_AT
    if count < _ID_BYTES or count % _ID_BYTES or value[1] * _ID_BYTES != count or value[1] > MAX_PARENTS:
        return f"AFTER has {len(value)} bytes, which does not fit its number of parents"
    if value[0] >= len(ACTIONS):
        return f"AFTER has the unknown action {value[0]}"
    if met_of(value) >> value[1]:
        return "AFTER says that parents are met which it does not have"
    return ""


def is_held(packed: bytes, at: i64) -> bool:
    """Whether a parent is not met, according to the value at offset `at`."""
    count: i64 = packed[at + 1]
    low: i64 = read_u32(packed, at + _MET_AT)
    if count <= 32:
        return _lacks(low, count)
    return _lacks(low, 32) or _lacks(read_u32(packed, at + _MET_AT + 4), count - 32)


def _lacks(bits: i64, count: i64) -> bool:
    """Whether one of the lowest bits is 0; the others are. Compiled, `1 << count` would have 32 bits."""
    return (bits + 1) >> count != 1


def met_of(value: bytes) -> int:
    """Which parents are met, as bits."""
    return int.from_bytes(value[_MET_AT:_IDS_AT], "little")


def action_of(value: bytes) -> int:
    """What happens if a parent can no longer be done."""
    return value[0]


def parents_of(value: bytes) -> list[bytes]:
    """The IDs of all parents."""
    return [value[at : at + _ID_BYTES] for at in range(_IDS_AT, len(value), _ID_BYTES)]


def unmet_of(value: bytes) -> list[bytes]:
    """The IDs of the parents that are not met."""
    met = met_of(value)
    return [parent for number, parent in enumerate(parents_of(value)) if not met >> number & 1]


def with_met(value: bytes, parent: bytes) -> bytes:
    """The value with one more parent met; the same one if it has no such parent."""
    met = met_of(value)
    for number, listed in enumerate(parents_of(value)):
        if listed == parent:
            met |= 1 << number
    return _with(value, met)


def with_all_met(value: bytes) -> bytes:
    """The value with all parents met."""
    return _with(value, (1 << value[1]) - 1)


def united_parents(known: bytes, received: bytes) -> bytes:
    """What two nodes know together; the known value if the other one has other parents."""
    if known[_IDS_AT:] != received[_IDS_AT:]:
        return known
    return _with(known, met_of(known) | met_of(received))


def _with(value: bytes, met: int) -> bytes:
    return value[:_MET_AT] + met.to_bytes(8, "little") + value[_IDS_AT:]
