"""The segments of the log: which files there are, and how many of their bytes are live.

A record's place is one number of 63 bits: the slot of its segment, and its offset and size in units of 8 bytes. Slots
are given to other segments when their own are deleted.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.raftlog.record import segment_seed

PREFIX: Final = "ordered-"
_SUFFIX: Final = ".log"
_DIGITS: Final = 10
_OFFSET_SHIFT: Final = 24
_SLOT_SHIFT: Final = 48
_UNITS: Final = (1 << 24) - 1
MOST_SEGMENTS: Final = 1 << 15


def name_of(number: i64) -> str:
    """The file name of a segment."""
    return f"{PREFIX}{number:0{_DIGITS}d}{_SUFFIX}"


def number_of(name: str) -> i64:
    """The number of the segment with this file name; 0 if it is no segment."""
    digits = name[len(PREFIX) : -len(_SUFFIX)]
    if len(digits) != _DIGITS or not (digits.isascii() and digits.isdigit()) or name != name_of(int(digits)):
        return 0
    return int(digits)


def offset_of(place: i64) -> i64:
    """Where in its segment a record begins."""
    return (place >> _OFFSET_SHIFT & _UNITS) << 3


def size_of(place: i64) -> i64:
    """The size of a record."""
    return (place & _UNITS) << 3


def slot_of(place: i64) -> i64:
    """The slot of the segment of a record."""
    return place >> _SLOT_SHIFT


class Segment:
    """One file of the log."""

    def __init__(self, number: i64, slot: i64, data_id: bytes) -> None:
        self.number: i64 = number
        self.slot: i64 = slot
        self.name = name_of(number)
        self.seed: i64 = segment_seed(data_id, number)
        self.size: i64 = 0
        """Its size in bytes, with what is still to be written."""
        self.live: i64 = 0
        """The bytes of its live records."""
        self.current: bool = False
        """Whether records are appended to it."""
        self.leaving: bool = False
        """Whether it is being deleted."""
        self.damaged: bool = False
        """Whether live records in it cannot be read, so that it can be neither rewritten nor deleted."""
        self.last_frame: i64 = 0
        """The number of the last frame in it. It can be read to its end once that is written."""

    def place(self, offset: i64, size: i64) -> i64:
        """The place of a record in this segment."""
        return self.slot << _SLOT_SHIFT | offset >> 3 << _OFFSET_SHIFT | size >> 3


class Segments:
    """All segments."""

    def __init__(self) -> None:
        self._by_slot: list[Segment | None] = [None]  # no place is 0
        self._free: list[int] = []
        self.uneven: bool = False
        """Whether there may be a segment that should be rewritten or deleted."""
        self.live: i64 = 0
        """The bytes of all live records."""

    def add(self, number: i64, data_id: bytes) -> Segment | None:
        """A new segment; None if there are too many."""
        if self._free:
            slot: i64 = self._free.pop()
        else:
            slot = len(self._by_slot)
            if slot >= MOST_SEGMENTS:
                return None
            self._by_slot.append(None)
        segment = Segment(number, slot, data_id)
        self._by_slot[slot] = segment
        return segment

    def discard(self, segment: Segment) -> None:
        """Forget a segment in which nothing is live."""
        self._by_slot[segment.slot] = None
        self._free.append(segment.slot)

    def of(self, place: i64) -> Segment:
        """The segment of a record."""
        segment = self._by_slot[slot_of(place)]
        assert segment is not None, "the segment of a live record exists"
        return segment

    @property
    def all(self) -> list[Segment]:
        """The segments, oldest first."""
        found = [segment for segment in self._by_slot if segment is not None]
        found.sort(key=_number)
        return found

    @property
    def disk_bytes(self) -> i64:
        """The size of all files."""
        total: i64 = 0
        for segment in self._by_slot:
            if segment is not None:
                total += segment.size
        return total

    def gain(self, place: i64) -> None:
        """A record is live."""
        size = size_of(place)
        self.of(place).live += size
        self.live += size

    def lose(self, place: i64) -> None:
        """A record is live no more; 0 stands for a record that was not found."""
        if place == 0:
            return
        size = size_of(place)
        segment = self.of(place)
        segment.live -= size
        self.live -= size
        if segment.live * 2 < segment.size and not segment.current and not segment.leaving:
            self.uneven = True

    def victim(self, written: i64) -> Segment | None:
        """The segment to rewrite or to delete next: the one with the smallest live share, if that is below half.

        Only segments whose frames are all written, up to the frame `written`, are looked at.
        """
        best: Segment | None = None
        waits = False
        for segment in self._by_slot:
            if segment is None or segment.current or segment.leaving:
                continue
            if segment.last_frame > written:
                waits = True
                continue
            if segment.live > 0 and (segment.damaged or segment.live * 2 >= segment.size):
                continue
            if best is None or segment.live * best.size < best.live * segment.size:
                best = segment
        if best is None:
            self.uneven = waits
        return best


def _number(segment: Segment) -> i64:
    return segment.number
