"""The record STATE: everything about a group but the bodies of entries and the state of its snapshot.

The first frame of each segment has one for every group, so that the newest segment alone says which records of older
segments count. Another one is written when a snapshot is complete, and before a segment is deleted whose entries were
released. The payload consists of numbers of variable length and of bytes behind their length (`varints`):

    flags (1: damaged) | term | vote | snapshot: index, term, members, stamp, bytes of the state, parts
    last index | runs: count, then first index (as difference) and term of each
    live entries up to the snapshot: count of ranges, then gap and length of each
"""

from __future__ import annotations

from array import array
from typing import Final

from mypy_extensions import i64

from disqued.raftlog.grouplog import GroupLog, Snapshot
from disqued.raftlog.varints import VarReader, put, put_blob

_DAMAGED: Final = 1
_MOST: Final = 1 << 27
"""More entries or bytes than a group can have in memory: a number above it is damage."""


def encode_state(group: GroupLog) -> bytes:
    """The payload for a group as it is now."""
    out = bytearray()
    put(out, _DAMAGED if group.damaged else 0)
    put(out, group.hard_term)
    put_blob(out, group.vote)
    snapshot = group.snapshot
    put(out, snapshot.index)
    put(out, snapshot.term)
    put_blob(out, snapshot.members)
    put(out, snapshot.stamp)
    put(out, snapshot.state_bytes)
    put(out, len(snapshot.chunks))
    put(out, group.last)
    put(out, len(group.starts))
    before: i64 = 0
    for number in range(i64(len(group.starts))):
        start: i64 = group.starts[number]
        put(out, start - before)
        put(out, group.terms[number])
        before = start
    _put_ranges(out, group)
    return bytes(out)


def _put_ranges(out: bytearray, group: GroupLog) -> None:
    """The ranges of live entries up to the snapshot."""
    ranges = bytearray()
    count: i64 = 0
    start: i64 = 0
    end: i64 = 0
    """Behind the last index of the range."""
    before: i64 = 0
    """Behind the last index of the range before."""
    for position in range(i64(len(group.old_indexes))):
        if group.old_places[position] < 0:
            continue
        index: i64 = group.old_indexes[position]
        if index != end:
            if end > 0:
                put(ranges, start - before)
                put(ranges, end - start)
                count += 1
                before = end
            start = index
        end = index + 1
    if end > 0:
        put(ranges, start - before)
        put(ranges, end - start)
        count += 1
    put(out, count)
    out += ranges


def decode_state(group: GroupLog, payload: bytes) -> None:
    """Give a group what the payload says; the places of its entries are not known.

    The group must have no places. Raises ValueError if the payload is malformed.
    """
    reader = VarReader(payload)
    flags = reader.take()
    hard_term = reader.take()
    vote = reader.blob()
    index = reader.take()
    term = reader.take()
    members = reader.blob()
    stamp = reader.take()
    state_bytes = reader.take()
    chunks = reader.take()
    last = reader.take()
    if chunks > state_bytes + 1 or not index <= last <= index + _MOST or state_bytes >> 3 > _MOST:
        raise ValueError("the state of a group is malformed")
    starts: array[int] = array("q")
    terms: array[int] = array("q")
    start: i64 = 0
    for _ in range(reader.take()):
        start += reader.take()
        starts.append(start)
        terms.append(reader.take())
    indexes: array[int] = array("q")
    at: i64 = 0
    for _ in range(reader.take()):
        at += reader.take()
        length = reader.take()
        if length > _MOST or at + length > index + 1:
            raise ValueError("the state of a group lists entries above its snapshot as old ones")
        indexes.extend(range(at, at + length))
        at += length
    if not reader.ended:
        raise ValueError("the state of a group is followed by more")
    group.damaged = bool(flags & _DAMAGED)
    group.hard_term = hard_term
    group.vote = vote
    group.snapshot = Snapshot(index, term, members, stamp, state_bytes, chunks)
    group.places = array("q", bytes(8 * (last - index)))
    group.old_indexes = indexes
    group.old_places = array("q", bytes(8 * len(indexes)))
    group.old_released = 0
    group.starts = starts
    group.terms = terms
