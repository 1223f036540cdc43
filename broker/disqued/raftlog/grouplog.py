"""What the log knows of one group: hard state, snapshot, terms, and the place of each live entry.

An entry is live while it is above the snapshot of its group, or below it and not released. Entries above the snapshot
have consecutive indexes: 8 bytes each, the place (`segments`), negative once the entry is released. Those up to the
snapshot may have gaps of any size, as jobs that nobody acknowledges stay: 16 bytes each, index and place. The place of
an entry that was not found yet (during recovery) is 0.

The term of an entry follows from its index: `starts` and `terms` are the runs of entries of one term.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

from mypy_extensions import i64

from disqued.raftlog.segments import Segments, size_of, slot_of


class Snapshot:
    """A snapshot: what it covers, and where the parts of its state are."""

    def __init__(self, index: i64, term: i64, members: bytes, stamp: i64, state_bytes: i64, chunks: i64) -> None:
        self.index: i64 = index
        self.term: i64 = term
        self.members = members
        self.stamp: i64 = stamp
        """Tells its chunks from those of other snapshots of the group."""
        self.state_bytes: i64 = state_bytes
        self.chunks: array[int] = array("q", bytes(8 * chunks))
        """The places of the parts of the state."""

    def drop(self, segments: Segments) -> None:
        """The chunks are needed no more."""
        for place in self.chunks:
            segments.lose(place)
        self.chunks = array("q")


class ReceivedEntries:
    """The entries up to a snapshot that is being received, which are live once the snapshot is complete."""

    def __init__(self) -> None:
        self.indexes: array[int] = array("q")
        self.terms: array[int] = array("q")
        self.places: array[int] = array("q")

    def add(self, index: i64, term: i64, place: i64) -> None:
        """Add an entry behind the others."""
        self.indexes.append(index)
        self.terms.append(term)
        self.places.append(place)

    def position(self, index: i64, term: i64) -> i64:
        """The position of an entry, or -1."""
        position: i64 = bisect_left(self.indexes, index)
        if position < len(self.indexes) and self.indexes[position] == index and self.terms[position] == term:
            return position
        return -1


class GroupLog:
    """The log of one group."""

    def __init__(self, number: i64, slot: i64, segments: Segments) -> None:
        self.number: i64 = number
        self.slot: i64 = slot
        """Tells its entries in the cache from those of other groups."""
        self._segments = segments
        self.damaged: bool = False
        self.removed: bool = False
        self.hard_term: i64 = 0
        self.vote = b""
        self.snapshot = Snapshot(0, 0, b"", 0, 0, 0)
        self.pending: Snapshot | None = None
        """A snapshot of which parts were written."""
        self.installing: bool = False
        """Whether that one comes from another replica, so that it replaces all entries."""
        self.received: ReceivedEntries | None = None
        self.places: array[int] = array("q")
        """Those of the entries above the snapshot."""
        self.old_indexes: array[int] = array("q")
        self.old_places: array[int] = array("q")
        """The entries up to the snapshot; the place is negative once the entry is released."""
        self.old_released: i64 = 0
        """How many of them are released: the log on disk still says that they are live."""
        self.starts: array[int] = array("q")
        self.terms: array[int] = array("q")
        self.releasable: i64 = 0
        """The bytes of released entries above the snapshot, which a snapshot would free."""
        self.asked: bool = False
        """Whether the owner was asked for a snapshot."""
        self.read_end: i64 = 0
        """Where the last fetch ended in its segment, to recognise fetches in sequence."""

    # --- looking ------------------------------------------------------------------------------------------------------

    @property
    def first(self) -> i64:
        """The index behind the snapshot."""
        return self.snapshot.index + 1

    @property
    def last(self) -> i64:
        """The index of the last entry, or of the snapshot."""
        return self.snapshot.index + len(self.places)

    def term_of(self, index: i64) -> i64:
        """The term of an entry, or of the snapshot; 0 if it is not known."""
        snapshot = self.snapshot
        if index == snapshot.index:
            return snapshot.term
        count: i64 = len(self.starts)
        if count == 0 or index > self.last:
            return 0
        if index >= i64(self.starts[count - 1]):
            return self.terms[count - 1]
        position: i64 = bisect_right(self.starts, index)
        return self.terms[position - 1] if position > 0 else 0

    def place_of(self, index: i64) -> i64:
        """The place of a live entry; 0 if there is none."""
        ahead = index - self.snapshot.index
        if ahead > 0:
            if ahead > len(self.places):
                return 0
            place: i64 = self.places[ahead - 1]
            return -place if place < 0 else place
        position: i64 = bisect_left(self.old_indexes, index)
        if position == len(self.old_indexes) or i64(self.old_indexes[position]) != index:
            return 0
        return max(self.old_places[position], 0)

    def next_index(self, index: i64) -> i64:
        """The lowest index from this one on that may have an entry; 0 if there is none."""
        if index <= self.snapshot.index:
            position: i64 = bisect_left(self.old_indexes, index)
            if position < len(self.old_indexes):
                return self.old_indexes[position]
            index = self.snapshot.index + 1
        return index if index <= self.last else 0

    def missing(self) -> i64:
        """How many live entries and parts of the snapshot have no place."""
        return self.places.count(0) + self.old_places.count(0) + self.snapshot.chunks.count(0)

    # --- changing -----------------------------------------------------------------------------------------------------

    def append(self, index: i64, term: i64, place: i64) -> None:
        """Append an entry in place of all from its index on. Raises ValueError if entries before it are missing."""
        if index != self.last + 1:
            self.check_append(index)
            self._truncate(index)
        self.places.append(place)
        if place != 0:
            self._segments.gain(place)
        count: i64 = len(self.terms)
        if count == 0 or i64(self.terms[count - 1]) != term:
            self.starts.append(index)
            self.terms.append(term)

    def check_append(self, index: i64) -> None:
        """Raise ValueError if the entries before this one are missing, or if the snapshot has it."""
        if not self.snapshot.index < index <= self.last + 1:
            raise ValueError(f"entry {index} of group {self.number} does not follow {self.last}")

    def _truncate(self, index: i64) -> None:
        """Remove the entries above the snapshot from this index on."""
        places = self.places
        keep = index - self.first
        for number in range(keep, i64(len(places))):
            self._lose(places[number])
        del places[keep:]
        while self.starts and i64(self.starts[-1]) >= index:
            self.starts.pop()
            self.terms.pop()

    def _lose(self, place: i64) -> None:
        """An entry above the snapshot is live no more."""
        if place < 0:
            place = -place
            self.releasable -= size_of(place)
        self._segments.lose(place)

    def release(self, index: i64) -> i64:
        """The body of an entry is needed no more. Returns how many more bytes a snapshot would free."""
        ahead = index - self.snapshot.index
        if ahead > 0:
            if ahead > len(self.places):
                return 0
            place: i64 = self.places[ahead - 1]
            if place <= 0:
                return 0
            self.places[ahead - 1] = -place
            size = size_of(place)
            self.releasable += size
            return size
        position: i64 = bisect_left(self.old_indexes, index)
        if position < len(self.old_indexes) and i64(self.old_indexes[position]) == index:
            place = self.old_places[position]
            if place > 0:
                self._segments.lose(place)
                self.old_places[position] = -place
                self.old_released += 1
        return 0

    def forget_released(self) -> None:
        """Drop what is known of released entries up to the snapshot, because a record says what is live."""
        if self.old_released == 0:
            return
        indexes: array[int] = array("q")
        places: array[int] = array("q")
        for position in range(i64(len(self.old_indexes))):
            place: i64 = self.old_places[position]
            if place >= 0:
                indexes.append(self.old_indexes[position])
                places.append(place)
        self.old_indexes = indexes
        self.old_places = places
        self.old_released = 0

    def advance(self, snapshot: Snapshot) -> None:
        """A snapshot of this replica is complete: entries up to its index that are released are live no more."""
        self.forget_released()
        count = snapshot.index - self.snapshot.index
        first = self.first
        for number in range(count):
            place: i64 = self.places[number]
            if place > 0:
                self.old_indexes.append(first + number)
                self.old_places.append(place)
            else:
                self._lose(place)
        del self.places[:count]
        self._set_snapshot(snapshot)
        self._prune_terms()

    def install(self, snapshot: Snapshot) -> None:
        """A snapshot of another replica is complete: it and the received entries replace everything."""
        self._drop_entries()
        received = self.received
        if received is not None:
            self.old_indexes = received.indexes
            self.old_places = received.places
            for position in range(i64(len(received.terms))):
                term: i64 = received.terms[position]
                if not self.terms or i64(self.terms[-1]) != term:
                    self.starts.append(received.indexes[position])
                    self.terms.append(term)
            self.received = None
        self._set_snapshot(snapshot)

    def _set_snapshot(self, snapshot: Snapshot) -> None:
        self.snapshot.drop(self._segments)
        self.snapshot = snapshot
        self.pending = None
        self.installing = False
        self.asked = False

    def _prune_terms(self) -> None:
        """Drop the runs before the first live entry."""
        first: i64 = self.old_indexes[0] if self.old_indexes else self.first
        surplus: i64 = bisect_right(self.starts, first) - 1
        if surplus > 0:
            del self.starts[:surplus]
            del self.terms[:surplus]

    def _drop_entries(self) -> None:
        for place in self.places:
            self._lose(place)
        for old in self.old_places:
            if old > 0:
                self._segments.lose(old)
        self.places = array("q")
        self.old_indexes = array("q")
        self.old_places = array("q")
        self.old_released = 0
        self.starts = array("q")
        self.terms = array("q")

    def abandon_received(self) -> None:
        """Drop the entries of a snapshot that is being received."""
        if self.received is not None:
            for place in self.received.places:
                self._segments.lose(place)
            self.received = None

    def abandon_pending(self) -> None:
        """Drop the parts of a snapshot that is not complete."""
        if self.pending is not None:
            self.pending.drop(self._segments)
            self.pending = None
            self.installing = False

    def drop(self) -> None:
        """The group is removed: nothing of it is live."""
        self.removed = True
        self.abandon_pending()
        self.abandon_received()
        self._drop_entries()
        self.snapshot.drop(self._segments)

    # --- places -------------------------------------------------------------------------------------------------------

    def fill(self, index: i64, term: i64, place: i64) -> bool:
        """Recovery found an entry. Returns whether its place was needed.

        Segments are read newest first, but each from its beginning, so the last one in a segment counts.
        """
        if index > self.last or self.term_at(index) != term:
            return False
        ahead = index - self.snapshot.index
        if ahead > 0:
            places = self.places
            position = ahead - 1
        else:
            places = self.old_places
            position = bisect_left(self.old_indexes, index)
            if position == len(places) or i64(self.old_indexes[position]) != index:
                return False
        before: i64 = places[position]
        if before != 0 and slot_of(before) != slot_of(place):
            return False
        self._segments.lose(before)
        places[position] = place
        self._segments.gain(place)
        return True

    def term_at(self, index: i64) -> i64:
        """The term of an entry by the runs alone: the entry at the index of the snapshot has one, too."""
        count: i64 = len(self.starts)
        if count > 0 and index >= i64(self.starts[count - 1]):
            return self.terms[count - 1]
        position: i64 = bisect_right(self.starts, index)
        return self.terms[position - 1] if position > 0 else 0

    def fill_chunk(self, stamp: i64, number: i64, place: i64) -> bool:
        """Recovery found a part of a snapshot. Returns whether its place was needed."""
        snapshot = self.snapshot
        if snapshot.stamp != stamp or not 0 <= number < len(snapshot.chunks) or snapshot.chunks[number] != 0:
            return False
        snapshot.chunks[number] = place
        self._segments.gain(place)
        return True

    def move(self, index: i64, term: i64, old: i64, new: i64) -> bool:
        """An entry was copied. Returns False if it is not live at the old place."""
        ahead = index - self.snapshot.index
        if 0 < ahead <= len(self.places) and abs(self.places[ahead - 1]) == old:
            self.places[ahead - 1] = new if i64(self.places[ahead - 1]) > 0 else -new
        elif ahead <= 0 and self.place_of(index) == old:
            self.old_places[bisect_left(self.old_indexes, index)] = new
        else:
            received = self.received
            position = received.position(index, term) if received is not None else -1
            if received is None or position < 0 or i64(received.places[position]) != old:
                return False
            received.places[position] = new
        self._segments.lose(old)
        self._segments.gain(new)
        return True

    def is_at(self, index: i64, term: i64, place: i64) -> bool:
        """Whether an entry is live at this place."""
        if self.place_of(index) == place:
            return True
        received = self.received
        position = received.position(index, term) if received is not None else -1
        return received is not None and position >= 0 and i64(received.places[position]) == place

    def chunk_is_at(self, stamp: i64, number: i64, place: i64) -> bool:
        """Whether a part of a snapshot, complete or not, is live at this place."""
        return self._with_chunk(stamp, number, place) is not None

    def move_chunk(self, stamp: i64, number: i64, old: i64, new: i64) -> None:
        """A part of a snapshot was copied."""
        snapshot = self._with_chunk(stamp, number, old)
        if snapshot is not None:
            snapshot.chunks[number] = new
            self._segments.lose(old)
            self._segments.gain(new)

    def _with_chunk(self, stamp: i64, number: i64, place: i64) -> Snapshot | None:
        for snapshot in (self.snapshot, self.pending):
            if (
                snapshot is not None
                and snapshot.stamp == stamp
                and 0 <= number < len(snapshot.chunks)
                and i64(snapshot.chunks[number]) == place
            ):
                return snapshot
        return None

    def has_records_in(self, slot: i64) -> bool:
        """Whether a live record is in the segment of this slot."""
        for places in (self.places, self.old_places, self.snapshot.chunks):
            for place in places:
                if place != 0 and slot_of(abs(place)) == slot:
                    return True
        return False
