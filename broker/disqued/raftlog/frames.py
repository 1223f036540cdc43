"""Frames: what one turn appends, as a unit that counts as a whole or not at all.

A frame is a record HEAD, the records of the turn, and a record TAIL. HEAD says where the frame begins (group), up to
which offset the segment was synced when the frame was made (term), how long it is (index), where the frame before it
begins (time), and which groups have records in that one. In the first frame of a segment, time is the number of groups
that it lists. TAIL says where the frame begins (group) and which groups have records in it. With these, recovery tells
damage of what was synced from a torn end, and knows which groups a damaged frame concerns, even when its own HEAD is
lost.

The places of records are known when they are added, before the frame is written, because frames are written one after
the other: a write that fails is repeated, and leaves nothing in the file.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.raftlog import record
from disqued.raftlog.record import encode, record_bytes
from disqued.raftlog.segments import Segment, offset_of, size_of, slot_of
from disqued.raftlog.varints import groups_payload


class Frame:
    """A frame that is complete, and is written or waits for that."""

    def __init__(self, number: i64, segment: Segment, start: i64, data: bytes) -> None:
        self.number: i64 = number
        self.segment = segment
        self.start: i64 = start
        """Its offset in the segment; 0 with the record SEGMENT before it: then the file is made first."""
        self.data = data

    @property
    def end(self) -> i64:
        """The offset behind it."""
        return self.start + len(self.data)


class FrameBuilder:
    """The frame that records are added to."""

    def __init__(self) -> None:
        self.segment: Segment | None = None
        self.number: i64 = 0
        self.groups: list[int] = []
        """The groups of the frame that was closed last."""
        self._listed = groups_payload([])
        """How its TAIL lists them."""
        self._start: i64 = 0
        self._first = b""
        """What precedes the frame in a new segment."""
        self._before_start: i64 = 0
        self._before = b""
        self._members: dict[int, None] = {}
        self._parts: list[bytes] = []
        self._at: i64 = 0

    def begin(self, segment: Segment, start: i64, before_start: i64, first: bytes) -> None:
        """Begin a frame at this offset.

        In a new segment it is behind the bytes `first`, and `before_start` is the number of groups that it lists.
        """
        self.segment = segment
        self.number += 1
        self._start = start
        self._first = first
        self._before_start = before_start
        self._before = groups_payload([]) if first else self._listed
        self._members = {}
        self._parts = []
        self._at = start + len(first) + record_bytes(len(self._before))

    @property
    def empty(self) -> bool:
        """Whether no record was added."""
        return not self._parts

    @property
    def size(self) -> i64:
        """The size so far."""
        return self._at - self._start

    def add(self, kind: i64, sub: i64, group: i64, term: i64, index: i64, time_ms: i64, payload: bytes) -> i64:
        """Add a record; returns its place."""
        segment = self.segment
        assert segment is not None, "a frame was begun"
        data = encode(segment.seed, kind, sub, group, term, index, time_ms, payload)
        size: i64 = len(data)
        place = segment.place(self._at, size)
        self._parts.append(data)
        self._members[group] = None
        self._at += size
        segment.size = self._at
        return place

    def close(self, synced: i64) -> Frame:
        """Complete the frame; the segment was synced up to this offset."""
        segment = self.segment
        assert segment is not None, "a frame was begun"
        start = self._start + len(self._first)
        groups = sorted(self._members)
        if groups != self.groups:
            self.groups = groups
            self._listed = groups_payload(groups)
        tail = encode(segment.seed, record.TAIL, 0, start, -1, -1, -1, self._listed)
        length = self._at + len(tail) - start
        head = encode(segment.seed, record.HEAD, 0, start, synced, length, self._before_start, self._before)
        data = b"".join((self._first, head, *self._parts, tail))
        segment.size = self._start + len(data)
        self._parts = []
        return Frame(self.number, segment, self._start, data)

    def find(self, place: i64) -> bytes:
        """The bytes of a record that was added; empty if it is not here."""
        segment = self.segment
        if segment is None or slot_of(place) != segment.slot:
            return b""
        at = self._start + len(self._first) + record_bytes(len(self._before))
        for part in self._parts:
            if at == offset_of(place):
                return part
            at += len(part)
        return b""


def find_in(frame: Frame, place: i64) -> bytes:
    """The bytes of a record in a complete frame; empty if it is not there."""
    start = offset_of(place) - frame.start
    if slot_of(place) != frame.segment.slot or start < 0 or start >= len(frame.data):
        return b""
    return frame.data[start : start + size_of(place)]
