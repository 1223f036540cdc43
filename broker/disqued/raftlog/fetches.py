"""Reads entries that are not in the cache.

A read takes in what is behind the entry as well (`near_bytes`, or `far_bytes` when entries are read in sequence) and
puts the live entries among it into the cache. Fetches that want an entry of a range that is being read wait for that
read. So fifty jobs at the head of a queue cost one or two reads.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.host import disk
from disqued.core.host.disk import Disk, DiskOwner, DiskWork
from disqued.raft.entry import Entry
from disqued.raftlog.appender import Appender
from disqued.raftlog.cache import EntryCache, key_of
from disqued.raftlog.grouplog import GroupLog
from disqued.raftlog.record import BODY, ENTRY, SOUND, RecordReader
from disqued.raftlog.segments import Segment, offset_of, size_of
from disqued.raftlog.tuning import LogTuning

_MOST_BYTES: Final = 4 << 20
"""A fetch ends early when it has this much data."""
_SEQUENCE_ENTRIES: Final = 32


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


class _Read:
    """A range of a segment that is being read, and who waits for it."""

    def __init__(self, work: DiskWork, segment: Segment) -> None:
        self.work = work
        self.segment = segment
        self.waiting: list[Fetch] = []

    def has(self, segment: Segment, offset: i64, size: i64) -> bool:
        """Whether a record is in the range."""
        work = self.work
        return self.segment is segment and work.offset <= offset and offset + size <= work.offset + work.size


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
        self._reads: list[_Read] = []
        self._reader = RecordReader()
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
        group = fetch.group
        while not group.removed:
            index = group.next_index(fetch.next)
            if index == 0 or index > fetch.high or fetch.bytes >= _MOST_BYTES:
                break
            fetch.next = index
            place = group.place_of(index)
            if place != 0:
                entry = self.entry_at(group, index, place)
                if entry is None:
                    read = self._wait(fetch, place)
                    if not read.work.finished:
                        return
                    self._reads.remove(read)
                    entry = self._parse(read).get(place)
                    if entry is None:
                        self._note_damage(group)
                        break
                self._take(fetch, entry)
            fetch.next = index + 1
        self.finished.append(fetch)

    def _take(self, fetch: Fetch, entry: Entry) -> None:
        fetch.entries.append(entry)
        fetch.bytes += len(entry.data)

    def _wait(self, fetch: Fetch, place: i64) -> _Read:
        """Wait for the read that has this record; start one unless one is under way.

        One that is finished, and of which this log was not told yet, belongs to those that wait for it.
        """
        segment = self._appender.segments.of(place)
        offset = offset_of(place)
        size = size_of(place)
        fetch.place = place
        for read in self._reads:
            if not read.work.finished and read.has(segment, offset, size):
                read.waiting.append(fetch)
                return read
        group = fetch.group
        ahead = offset - group.read_end
        sequence = fetch.high - fetch.next >= _SEQUENCE_ENTRIES or 0 <= ahead < self._tuning.near_bytes
        work = DiskWork(disk.READ, segment.name, self._owner)
        work.offset = offset
        work.size = max(size, self._tuning.far_bytes if sequence else self._tuning.near_bytes)
        group.read_end = offset + work.size
        read = _Read(work, segment)
        read.waiting.append(fetch)
        self._reads.append(read)
        self.count += 1
        self._disk.start(work)
        return read

    def done(self, work: DiskWork) -> bool:
        """Continue the fetches that waited; returns False if the work is not of a fetch."""
        for read in self._reads:
            if read.work is work:
                self._reads.remove(read)
                self._done(read)
                return True
        return False

    def _done(self, read: _Read) -> None:
        found = self._parse(read)
        for fetch in read.waiting:
            group = fetch.group
            entry = found.get(fetch.place)
            if group.removed or group.place_of(fetch.next) != fetch.place:
                self.start(fetch)  # the entry was copied or replaced meanwhile
            elif entry is not None:
                self._take(fetch, entry)
                fetch.next += 1
                self.start(fetch)
            else:
                self._note_damage(group)
                self.finished.append(fetch)

    def _note_damage(self, group: GroupLog) -> None:
        if not group.damaged:
            group.damaged = True
            self.damaged.append(group.number)

    def _parse(self, read: _Read) -> dict[int, Entry]:
        """Take the live entries of the range into the cache; returns them by their place.

        Only those of groups that somebody fetches from: others would cost more than they save.
        """
        found: dict[int, Entry] = {}
        data = b"" if read.work.error else b"".join(read.work.data)
        reader = self._reader
        reader.load(data, read.segment.seed)
        groups: dict[int, GroupLog] = {}
        for fetch in read.waiting:
            groups[fetch.group.number] = fetch.group
        at: i64 = 0
        while reader.peek(at):
            group = groups.get(reader.group)
            if group is not None:
                if reader.parse(at) != SOUND:
                    break
                place = read.segment.place(read.work.offset + at, reader.size)
                is_entry = reader.kind == ENTRY or reader.kind == BODY
                if is_entry and group.place_of(reader.index) == place:
                    entry = _entry_of(reader)
                    found[place] = entry
                    self._cache.put(key_of(group.slot, entry.index), entry)
            at += reader.size
        for fetch in read.waiting:  # what is behind a damaged record
            offset = offset_of(fetch.place) - read.work.offset
            if fetch.place not in found and offset < len(data) and reader.parse(offset) == SOUND:
                found[fetch.place] = _entry_of(reader)
        return found


def _entry_of(reader: RecordReader) -> Entry:
    return Entry(reader.term, reader.index, reader.time_ms, reader.sub, reader.payload())
