"""The end of the log: adds records, closes frames, and begins new segments.

A new segment begins with the state of every group (`groupstate`), so that the newest segment alone says what counts.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.host.disk import Disk, DiskOwner
from disqued.raftlog.frames import Frame, FrameBuilder
from disqued.raftlog.grouplog import GroupLog
from disqued.raftlog.groupstate import encode_state
from disqued.raftlog.record import CHUNK, SEGMENT_BYTES, STATE, segment_record
from disqued.raftlog.segments import MOST_SEGMENTS, Segments
from disqued.raftlog.tuning import LogTuning
from disqued.raftlog.writer import Writer

RELAXED_MS: Final = 20
"""How long what nobody waits for stays in memory at most."""


class Copy:
    """A live record that is copied to the end of the log."""

    def __init__(
        self, group: GroupLog, kind: i64, sub: i64, term: i64, index: i64, time_ms: i64, data: bytes, place: i64
    ) -> None:
        self.group = group
        self.kind: i64 = kind
        self.sub: i64 = sub
        self.term: i64 = term
        self.index: i64 = index
        self.time_ms: i64 = time_ms
        self.data = data
        self._place: i64 = place

    def placed(self, place: i64) -> None:
        """The record is at this place now."""
        if self.kind == CHUNK:
            self.group.move_chunk(self.time_ms, self.index, self._place, place)
        else:
            self.group.move(self.index, self.term, self._place, place)


class Appender:
    """Adds records to the open frame."""

    def __init__(self, host_disk: Disk, owner: DiskOwner, tuning: LogTuning) -> None:
        self._tuning = tuning
        self.segments = Segments()
        self.groups: dict[int, GroupLog] = {}
        self.released: dict[int, GroupLog] = {}
        """Groups of which entries up to the snapshot were released since their state was written."""
        self.writer = Writer(host_disk, owner, tuning)
        self.data_id = b""
        self.next_number: i64 = 1
        """The number of the next segment."""
        self.due: bool = False
        """Whether the open frame should be written."""
        self.due_ms: i64 = 0
        """When it should be written although nobody waits for it; 0 if nobody has said so."""
        self._builder = FrameBuilder()

    @property
    def begun(self) -> bool:
        """Whether there is a segment to append to."""
        return self._builder.segment is not None

    @property
    def empty(self) -> bool:
        """Whether nothing was added to the open frame."""
        return self._builder.empty

    @property
    def last_frame(self) -> i64:
        """The number of the last frame that has records: the open one unless it is empty."""
        return max(self._builder.number - 1, 0) if self._builder.empty else self._builder.number

    def want_written(self) -> None:
        """Have the open frame written."""
        self.due = True

    def allow_later(self, now_ms: i64) -> None:
        """Nobody waits for what was added: have it written with what somebody waits for, or after a time."""
        if self.due_ms == 0:
            self.due_ms = now_ms + RELAXED_MS

    def add(self, kind: i64, sub: i64, group: i64, term: i64, index: i64, time_ms: i64, payload: bytes) -> i64:
        """Add a record; returns its place, or 0 if the log is out of service."""
        builder = self._builder
        if builder.segment is None:
            self.roll([])
        if self.writer.failure:
            return 0
        if builder.size >= self._tuning.frame_bytes:
            self.close()
        return builder.add(kind, sub, group, term, index, time_ms, payload)

    def add_state(self, group: GroupLog) -> None:
        """Add the state of a group as it is now."""
        self.add(STATE, 0, group.number, -1, -1, -1, encode_state(group))
        group.forget_released()

    def add_released(self) -> None:
        """Make the log say which entries were released, before the segments that have them are deleted."""
        for group in list(self.released.values()):  # a segment that begins meanwhile has the state of all
            if group.old_released > 0 and not group.removed:
                self.add_state(group)
        self.released.clear()

    def stamp(self) -> i64:
        """A number that no snapshot of the group had before."""
        segment = self._builder.segment
        return segment.number << 28 | segment.size >> 3 if segment is not None else 0

    def find(self, place: i64) -> bytes:
        """The bytes of a record that is not written yet; empty if it is written."""
        return self.writer.find(place) or self._builder.find(place)

    def close(self) -> None:
        """Close the open frame, and have it written."""
        builder = self._builder
        segment = builder.segment
        assert segment is not None, "a frame was begun"
        frame = builder.close(self.writer.offset_synced(segment))
        self.writer.queue.append(frame)
        segment.last_frame = frame.number
        self.due = False
        self.due_ms = 0
        if frame.end >= self._tuning.segment_bytes:
            self.roll([])
        else:
            builder.begin(segment, frame.end, frame.start, b"")

    def roll(self, copies: list[Copy]) -> None:
        """Begin a new segment with the state of all groups, and with copies of these records."""
        builder = self._builder
        before = builder.segment
        segment = self.segments.add(self.next_number, self.data_id)
        if segment is None:
            self.writer.failure = f"there are {MOST_SEGMENTS} segments, no more are possible"
            return
        if before is not None:
            before.current = False
        self.next_number += 1
        segment.current = True
        self.segments.uneven = True
        builder.begin(segment, 0, len(self.groups), segment_record(self.data_id, segment.number))
        for number in sorted(self.groups):
            group = self.groups[number]
            builder.add(STATE, 0, number, -1, -1, -1, encode_state(group))
            group.forget_released()
            group.asked = False
        self.released.clear()
        for copy in copies:
            copy.placed(
                builder.add(copy.kind, copy.sub, copy.group.number, copy.term, copy.index, copy.time_ms, copy.data)
            )
        frame: Frame = builder.close(0)
        self.writer.queue.append(frame)
        segment.last_frame = frame.number
        builder.begin(segment, frame.end, SEGMENT_BYTES, b"")
