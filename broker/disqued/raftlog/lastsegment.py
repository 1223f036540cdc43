"""Reads the newest segment at a start: which groups there are, and what counts of their records.

The first frame of the segment has the state of every group. The frames behind it are applied in order, each as a whole.
What follows is decided for a frame that is not sound (a record is damaged, or HEAD or TAIL is missing):

- **It was synced**, because the HEAD of a later frame says so: this is damage. Every group that has records in the
  frame is damaged: those that TAIL lists, or the HEAD of the frame behind it. If neither can be read, every group of
  the node is. A group is not damaged if a later record STATE says everything about it, or if it was removed later.
- **It may not have been synced**: it is torn, and it and everything behind it is dropped. Nobody was told that it is
  safe. But a frame that is complete and that has no blank pages (`scan`) was not torn: this counts as damage as well,
  because it may have been synced just before the end.
- **It is the first frame.** If it was synced and has the states of all groups, only copies of entries are damaged: it
  counts. If it was synced and has not, the log is lost as a whole, and gets a new data ID: all replicas of the node are
  gone. Otherwise the whole segment is dropped, and the one before it, which was synced before this one was
  begun, is the newest.

So no older hard state ever takes the place of a lost one, but for the bits of the very last frame that flip in a way
that looks like blank pages. Damage in older segments is found elsewhere (`bodies`): a live record is missing.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.raftlog import record
from disqued.raftlog.grouplog import GroupLog
from disqued.raftlog.groupstate import decode_state
from disqued.raftlog.record import SEGMENT_BYTES, RecordReader
from disqued.raftlog.scan import PAGE_BYTES, ScanHandler
from disqued.raftlog.segments import Segments
from disqued.raftlog.varints import groups_of

_UNKNOWN: Final = -1
_WORD: Final = 8


class _Change:
    """A record that changes a group."""

    def __init__(self, reader: RecordReader) -> None:
        self.kind: i64 = reader.kind
        self.group: i64 = reader.group
        self.term: i64 = reader.term
        self.index: i64 = reader.index
        self.payload = b"" if reader.kind == record.ENTRY else reader.payload()


class _Frame:
    """A frame, sound or not."""

    def __init__(self, start: i64, length: i64, *, sound: bool) -> None:
        self.start: i64 = start
        self.length: i64 = length
        self.sound: bool = sound
        self.complete: bool = False
        """Whether it was written up to its end."""
        self.blank: bool = False
        self.groups: list[int] | None = None
        """The groups that have records in it, if that is known."""
        self.changes: list[_Change] = []
        self.states: i64 = _UNKNOWN
        """How many states the first frame of a segment has."""

    @property
    def has_all_states(self) -> bool:
        """Whether the first frame of a segment lacks copies of entries only."""
        return self.states == len(self.changes)


class LastSegment(ScanHandler):
    """What the newest segment says; `end` completes it."""

    def __init__(self, segments: Segments) -> None:
        self._segments = segments
        self.groups: dict[int, GroupLog] = {}
        self.proven: i64 = 0
        """Up to where the segment was synced for certain."""
        self.usable: bool = False
        """Whether the first frame is sound."""
        self.lost: bool = False
        """Whether the log is lost as a whole."""
        self.cut: i64 = 0
        """Where the sound part ends."""
        self._frame: _Frame | None = None
        self._held: list[_Frame] = []
        """Frames from the first unsound one on, which is not judged yet."""
        self._all_damaged: bool = False
        self._begun_again: dict[int, None] = {}
        """Groups that were removed: whatever follows is complete."""
        self.end_bytes: i64 = SEGMENT_BYTES
        """Where the last record or the damage behind it ends."""

    def unsound(self, start: i64, end: i64, *, blank: bool) -> None:
        """Damage, or the end of a write that was cut off."""
        frame = self._frame
        if frame is None:
            frame = self._frame = _Frame(start, _UNKNOWN, sound=False)
        frame.sound = False
        frame.blank = frame.blank or blank
        self.end_bytes = end

    def record(self, reader: RecordReader, offset: i64) -> None:
        """A record."""
        self.end_bytes = offset + reader.size
        kind = reader.kind
        if kind == record.HEAD:
            self._head(reader, offset)
            return
        frame = self._frame
        if frame is None:
            frame = self._frame = _Frame(offset, _UNKNOWN, sound=False)
        if kind == record.TAIL:
            self._tail(frame, reader)
        elif kind in {record.ENTRY, record.HARD, record.STATE, record.REMOVED}:
            frame.changes.append(_Change(reader))

    def _head(self, reader: RecordReader, offset: i64) -> None:
        before = self._frame
        if before is not None:
            before.complete = True
            before.sound = False
            self._finish(before)
        if self._held:
            suspect = self._held[-1]
            if not suspect.sound and suspect.groups is None and suspect.start == reader.time_ms:
                suspect.groups = groups_of(reader.payload())
        self._frame = _Frame(offset, reader.index, sound=True)
        if offset == SEGMENT_BYTES:
            self._frame.states = reader.time_ms
        self.proven = max(self.proven, reader.term)
        self._judge(self.proven)

    def _tail(self, frame: _Frame, reader: RecordReader) -> None:
        frame.complete = True
        if reader.group != frame.start:
            frame.sound = False
            self._finish(frame)
            frame = _Frame(reader.group, _UNKNOWN, sound=False)
            frame.complete = True
        frame.groups = groups_of(reader.payload())
        frame.sound = frame.sound and frame.start + frame.length == self.end_bytes
        self._finish(frame)

    def _finish(self, frame: _Frame) -> None:
        """A frame ends."""
        self._frame = None
        if frame.sound and not self._held:
            self._apply(frame)
        else:
            self._held.append(frame)

    def _judge(self, synced: i64) -> None:
        """Everything that begins before this offset was synced."""
        held = self._held
        while held and held[0].start < synced:
            self._take(held.pop(0))
        while held and held[0].sound:
            self._apply(held.pop(0))

    def _take(self, frame: _Frame) -> None:
        """Apply a frame, or note the damage."""
        if frame.sound:
            self._apply(frame)
            return
        if frame.start == SEGMENT_BYTES:
            if frame.has_all_states:
                self._apply(frame)
            else:
                self.lost = True
            return
        groups = frame.groups
        if groups is None:
            self._all_damaged = True
            self._begun_again = {}
            groups = list(self.groups)
        for number in groups:
            self._group(number).damaged = True
            self._begun_again.pop(number, None)

    def end(self, file_bytes: i64) -> None:
        """The segment ends, in a file of this size: judge what is left."""
        frame = self._frame
        if frame is not None:
            frame.complete = frame.complete or self._has_end(frame, file_bytes)
            frame.sound = False
            self._finish(frame)
        held = self._held
        self.cut = self.end_bytes
        while held:
            frame = held[0]
            if not frame.sound and (frame.blank or not frame.complete or frame.start == SEGMENT_BYTES):
                self.cut = frame.start
                return
            self._take(held.pop(0))

    def _has_end(self, frame: _Frame, file_bytes: i64) -> bool:
        """Whether the last frame was written up to its end.

        A TAIL that lists only group 0 ends with a word of zeros, which looks like the space behind it. If this word
        does not begin a page, it was written together with what precedes it.
        """
        end = frame.start + frame.length
        if frame.length == _UNKNOWN or end > file_bytes:
            return False
        left = end - self.end_bytes
        return left <= 0 or (left == _WORD and self.end_bytes % PAGE_BYTES != 0)

    # --- changes ------------------------------------------------------------------------------------------------------

    def _group(self, number: i64) -> GroupLog:
        group = self.groups.get(number)
        if group is None:
            group = self.groups[number] = GroupLog(number, 0, self._segments)
            group.damaged = self._all_damaged and number not in self._begun_again
        return group

    def _apply(self, frame: _Frame) -> None:
        """The frame counts."""
        if frame.start == SEGMENT_BYTES:
            self.usable = True
        for change in frame.changes:
            self._change(change)

    def _change(self, change: _Change) -> None:
        number = change.group
        if change.kind == record.ENTRY:
            group = self._group(number)
            try:
                group.append(change.index, change.term, 0)
            except ValueError:
                group.damaged = True  # the entries before it were in a damaged frame
        elif change.kind == record.HARD:
            group = self._group(number)
            group.hard_term = change.term
            group.vote = change.payload
        elif change.kind == record.STATE:
            group = GroupLog(number, 0, self._segments)
            try:
                decode_state(group, change.payload)
            except ValueError:
                group.damaged = True
            self.groups[number] = group
        else:
            self.groups.pop(number, None)
            self._begun_again[number] = None
