"""Reads entries that are not in the cache.

A segment is read by one read at a time. A read begins at the entry of a fetch and takes in what is behind it as well
(`near_bytes`; `far_bytes` when entries are read in sequence; `shared_bytes` when many wait for what is there). All
fetches that wait for entries in that range are continued, and the other live entries that their groups have there enter
the cache. So fifty jobs at the head of a queue cost one or two reads, and when thousands of groups read their entries
after a start, each part of a segment is read once and not once for each group.

Usually the next read of a segment is for the entry nearest to its beginning: the groups that are behind come up with
the others, and then they read together. Every eighth read is for the fetch that waits longest, so that none waits for
long.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Final

from mypy_extensions import i64

from disqued.core.host import disk
from disqued.core.host.disk import Disk, DiskOwner, DiskWork
from disqued.raft.entry import Entry
from disqued.raftlog.appender import Appender
from disqued.raftlog.cache import EntryCache, key_of
from disqued.raftlog.grouplog import GroupLog
from disqued.raftlog.record import SOUND, RecordReader
from disqued.raftlog.segments import Segment, offset_of, size_of
from disqued.raftlog.tuning import LogTuning

_MOST_BYTES: Final = 4 << 20
"""A fetch ends early when it has this much data."""
_MOST_HELD: Final = 1 << 14
_ENOUGH: Final = 64
"""When the fetches that wait hold more entries than `_MOST_HELD`, those that have `_ENOUGH` end early: thousands of
groups may fetch at once."""
_SEQUENCE_ENTRIES: Final = 32
_SHARED: Final = 8
"""If so many other fetches wait for what is just behind, the read takes in more."""
_FAIR: Final = 8
"""Every so many reads of a segment, one is for the fetch that waits longest."""
_NUMBER_BITS: Final = 34
_NUMBER_MASK: Final = (1 << _NUMBER_BITS) - 1


class Fetch:
    """What one call of `RaftLog.fetch` wants."""

    def __init__(self, group: GroupLog, low: i64, high: i64, token: object) -> None:
        self.group = group
        self.next: i64 = low
        self.high: i64 = high
        self.token = token
        self.entries: list[Entry] = []
        self.bytes: i64 = 0
        self.place: i64 = 0
        """The place of the entry that it waits for."""
        self.number: i64 = 0
        """Grows from fetch to fetch."""

    @property
    def key(self) -> i64:
        """Orders the fetches of a segment: by the offset of the entry, then by age."""
        return offset_of(self.place) << _NUMBER_BITS | self.number & _NUMBER_MASK

    @property
    def is_full(self) -> bool:
        """Whether it has as much data as a fetch may have."""
        return self.bytes >= _MOST_BYTES

    def take(self, entry: Entry) -> None:
        """Add the next entry."""
        self.entries.append(entry)
        self.bytes += len(entry.data)
        self.next = entry.index + 1


class _Line:
    """The fetches that wait for entries of one segment."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.waiting: dict[int, Fetch] = {}
        """By their keys; the one that waits longest is the first."""
        self._keys: list[int] = []
        """Ascending."""
        self.work: DiskWork | None = None
        """The read that is under way."""
        self._turn: i64 = 0

    def add(self, fetch: Fetch) -> None:
        """A fetch waits for the entry at its place."""
        key = fetch.key
        self.waiting[key] = fetch
        if self._keys and key < self._keys[-1]:
            insort(self._keys, key)
        else:
            self._keys.append(key)

    def choose(self) -> Fetch:
        """The fetch for which the next read is."""
        self._turn = (self._turn + 1) % _FAIR
        if self._turn == 0:
            return next(iter(self.waiting.values()))
        return self.waiting[self._keys[0]]

    def remove(self, fetch: Fetch) -> None:
        """A fetch waits no more."""
        key = fetch.key
        del self.waiting[key]
        del self._keys[bisect_left(self._keys, key)]

    def count(self, low: i64, high: i64) -> i64:
        """How many fetches wait for entries that begin in this range."""
        keys = self._keys
        return bisect_left(keys, high << _NUMBER_BITS) - bisect_left(keys, low << _NUMBER_BITS)

    def take(self, low: i64, high: i64) -> list[Fetch]:
        """The fetches whose entries are completely in this range; they wait no more."""
        keys = self._keys
        first = bisect_left(keys, low << _NUMBER_BITS)
        last = bisect_left(keys, high << _NUMBER_BITS)
        reached: list[Fetch] = []
        cut_off: list[int] = []
        for key in keys[first:last]:
            fetch = self.waiting[key]
            if offset_of(fetch.place) + size_of(fetch.place) <= high:
                reached.append(fetch)
                del self.waiting[key]
            else:
                cut_off.append(key)
        keys[first:last] = cut_off
        return reached


class Fetches:
    """All fetches that wait for the disk."""

    def __init__(
        self, host_disk: Disk, owner: DiskOwner, tuning: LogTuning, appender: Appender, cache: EntryCache
    ) -> None:
        self._disk = host_disk
        self._owner = owner
        self._tuning = tuning
        self._appender = appender
        self._cache = cache
        self._lines: dict[int, _Line] = {}
        """By the number of the segment."""
        self._reader = RecordReader()
        self._last_number: i64 = 0
        self._held: i64 = 0
        """How many entries the fetches have that wait."""
        self.finished: list[Fetch] = []
        """To be told to the owner."""
        self.damaged: list[int] = []
        """Groups that have entries which cannot be read."""
        self.count: i64 = 0
        """How many reads were made."""

    def entry_at(self, group: GroupLog, index: i64, place: i64) -> Entry | None:
        """An entry from memory."""
        entry = self._cache.get(key_of(group.slot, index))
        if entry is None or entry.term != group.term_at(index):
            entry = None
            data = self._appender.find(place)
            if data:
                reader = self._reader
                reader.load(data, self._appender.segments.of(place).seed)
                if reader.parse(0) == SOUND:
                    entry = _entry_of(reader)
        return entry

    def start(self, fetch: Fetch) -> None:
        """Collect entries until the disk must read, or until the fetch is complete."""
        self._last_number += 1
        fetch.number = self._last_number
        self._continue(fetch)
        self._read()

    def _continue(self, fetch: Fetch) -> None:
        """Collect entries from memory; the fetch is finished then, or waits for a segment."""
        group = fetch.group
        while not group.removed:
            index = group.next_index(fetch.next)
            if index == 0 or index > fetch.high or fetch.is_full:
                break
            fetch.next = index
            place = group.place_of(index)
            if place == 0:
                fetch.next = index + 1
                continue
            entry = self.entry_at(group, index, place)
            if entry is None:
                if self._held > _MOST_HELD and len(fetch.entries) >= _ENOUGH:
                    break
                self._wait(fetch, place)
                return
            fetch.take(entry)
        self.finished.append(fetch)

    def _wait(self, fetch: Fetch, place: i64) -> None:
        fetch.place = place
        segment = self._appender.segments.of(place)
        line = self._lines.get(segment.number)
        if line is None:
            line = self._lines[segment.number] = _Line(segment)
        line.add(fetch)
        self._held += len(fetch.entries)

    def _read(self) -> None:
        """Begin to read each segment that somebody waits for and that is not being read."""
        while idle := [line for line in self._lines.values() if line.work is None and line.waiting]:
            for line in idle:
                work = self._begin(line)
                if work is not None and work.finished:
                    self._serve(line, work)
        for number in [number for number, line in self._lines.items() if not line.waiting and line.work is None]:
            del self._lines[number]

    def _begin(self, line: _Line) -> DiskWork | None:
        """Begin a read for one of the fetches; None if there is none any more."""
        while line.waiting:
            fetch = line.choose()
            group = fetch.group
            if group.removed or group.place_of(fetch.next) != fetch.place:  # it was copied or replaced meanwhile
                line.remove(fetch)
                self._held -= len(fetch.entries)
                self._continue(fetch)
                continue
            tuning = self._tuning
            offset = offset_of(fetch.place)
            size = tuning.near_bytes
            if line.count(offset, offset + tuning.shared_bytes) > _SHARED:
                size = tuning.shared_bytes
            elif fetch.high - fetch.next >= _SEQUENCE_ENTRIES or 0 <= offset - group.read_end < tuning.near_bytes:
                size = tuning.far_bytes
            work = DiskWork(disk.READ, line.segment.name, self._owner)
            work.offset = offset
            work.size = max(size_of(fetch.place), size)
            group.read_end = offset + work.size
            line.work = work
            self.count += 1
            self._disk.start(work)
            return work
        return None

    def done(self, work: DiskWork) -> bool:
        """Continue the fetches that waited; returns False if the work is not of a fetch."""
        for line in self._lines.values():
            if line.work is work:
                self._serve(line, work)
                self._read()
                return True
        return False

    def _serve(self, line: _Line, work: DiskWork) -> None:
        """A part of a segment was read: continue all fetches that waited for entries in it."""
        line.work = None
        reader = self._reader
        data = b"" if work.error else b"".join(work.data)
        seed = line.segment.seed
        served: set[int] = set()
        for fetch in line.take(work.offset, work.offset + work.size):
            self._held -= len(fetch.entries)
            group = fetch.group
            is_there = not group.removed and group.place_of(fetch.next) == fetch.place
            is_first = group.number not in served
            if is_there and (is_first or self.entry_at(group, fetch.next, fetch.place) is None):
                reader.load(data, seed)
                if not self._take_in(fetch, line.segment, work.offset, beyond=is_first):
                    self._note_damage(group)
                    self.finished.append(fetch)
                    continue
                served.add(group.number)
            self._continue(fetch)

    def _take_in(self, fetch: Fetch, segment: Segment, start: i64, *, beyond: bool) -> bool:
        """Take the entries that were read; returns False if the first one is damaged.

        `beyond`: put what the group has behind the end of the fetch into the cache, too.
        """
        group = fetch.group
        reader = self._reader
        index = fetch.next
        place = fetch.place
        is_first = True
        while place != 0 and self._appender.segments.of(place) is segment and offset_of(place) >= start:
            if reader.parse(offset_of(place) - start) != SOUND or reader.index != index:
                return not is_first
            entry = _entry_of(reader)
            self._cache.put(key_of(group.slot, index), entry)
            if index <= fetch.high and not fetch.is_full:
                fetch.take(entry)
            elif not beyond:
                break
            is_first = False
            index = group.next_index(index + 1)
            place = group.place_of(index) if index != 0 else 0
        return True

    def _note_damage(self, group: GroupLog) -> None:
        if not group.damaged:
            group.damaged = True
            self.damaged.append(group.number)


def _entry_of(reader: RecordReader) -> Entry:
    return Entry(reader.term, reader.index, reader.time_ms, reader.sub, reader.payload())
