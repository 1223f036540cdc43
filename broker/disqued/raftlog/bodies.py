"""Finds the live records of all segments at a start, newest segment first, and what must be copied of the newest one.

The newest segment says which records are live (`lastsegment`). A record is identified by group, index and term, or by
group, stamp and part; so it does not matter in which segment it is found, or whether a segment that was deleted came
back after a loss of power. A live record that is found nowhere means that its group is damaged.

Records of the newest segment that may not have been synced (`proven`) are collected, and copied to the next segment
before the log is used: after a failed sync systems show data that is not on the disk.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.raft.entry import MEMBERS, Entry
from disqued.raftlog.appender import Copy
from disqued.raftlog.grouplog import GroupLog
from disqued.raftlog.record import BODY, CHUNK, ENTRY, RecordReader
from disqued.raftlog.scan import ScanHandler
from disqued.raftlog.segments import Segment


class Bodies(ScanHandler):
    """Fills in the places of live records."""

    def __init__(self, groups: dict[int, GroupLog]) -> None:
        self._groups = groups
        self.segment: Segment | None = None
        """The segment that is read."""
        self.proven: i64 = 0
        """Records from this offset on are collected."""
        self.copies: list[Copy] = []
        self.members: dict[int, dict[int, Entry]] = {}
        """The entries of kind MEMBERS above the snapshot, by group and index."""
        self.damaged: list[str] = []
        """Where records are damaged, for the log."""

    def unsound(self, start: i64, end: i64, *, blank: bool) -> None:
        """Damage in this range; whether it matters shows when all was read."""
        segment = self.segment
        if segment is not None and not blank:
            self.damaged.append(f"{segment.name} bytes {start} to {end}")

    def record(self, reader: RecordReader, offset: i64) -> None:
        """A record, which may be live."""
        kind = reader.kind
        if kind != ENTRY and kind != BODY and kind != CHUNK:
            return
        group = self._groups.get(reader.group)
        segment = self.segment
        if group is None or segment is None:
            return
        place = segment.place(offset, reader.size)
        if kind == CHUNK:
            if not group.fill_chunk(reader.time_ms, reader.index, place):
                return
        elif not group.fill(reader.index, reader.term, place):
            return
        elif reader.sub == MEMBERS and reader.index > group.snapshot.index:
            entry = Entry(reader.term, reader.index, reader.time_ms, reader.sub, reader.payload())
            self.members.setdefault(reader.group, {})[reader.index] = entry
        if offset >= self.proven:
            kept = CHUNK if kind == CHUNK else BODY
            data = reader.payload()
            self.copies.append(Copy(group, kept, reader.sub, reader.term, reader.index, reader.time_ms, data, place))
