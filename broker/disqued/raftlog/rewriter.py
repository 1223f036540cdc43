"""Gives space back: rewrites segments of which less than half is live, and deletes those in which nothing is.

Live records are copied to the end of the log, one slice per sync. A segment is deleted only when everything that was
added to the log until then is synced: the copies, snapshots and truncations that made its records superfluous, and
states that say which entries were released. So no order of events deletes a record that a start would need.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.host import disk
from disqued.core.host.disk import Disk, DiskOwner, DiskWork
from disqued.raftlog.appender import Appender, Copy
from disqued.raftlog.record import BODY, CHUNK, ENTRY, SEGMENT_BYTES, RecordReader
from disqued.raftlog.scan import ScanHandler, Scanner
from disqued.raftlog.segments import Segment
from disqued.raftlog.tuning import LogTuning


class _Copier(ScanHandler):
    """Copies the live records of a segment to the end of the log."""

    def __init__(self, appender: Appender, segment: Segment) -> None:
        self._appender = appender
        self._segment = segment

    def unsound(self, start: i64, end: i64, *, blank: bool) -> None:
        """Damage. If a live record is in it, the segment has live bytes in the end."""

    def record(self, reader: RecordReader, offset: i64) -> None:
        """A record, which may be live."""
        kind = reader.kind
        if kind != ENTRY and kind != BODY and kind != CHUNK:
            return
        appender = self._appender
        group = appender.groups.get(reader.group)
        if group is None:
            return
        place = self._segment.place(offset, reader.size)
        if kind == CHUNK:
            if not group.chunk_is_at(reader.time_ms, reader.index, place):
                return
        elif not group.is_at(reader.index, reader.term, place):
            return
        else:
            kind = BODY
        copy = Copy(group, kind, reader.sub, reader.term, reader.index, reader.time_ms, reader.payload(), place)
        new = appender.add(kind, copy.sub, reader.group, copy.term, copy.index, copy.time_ms, copy.data)
        if new != 0:
            copy.placed(new)


class _Removal:
    """A segment that is deleted once a frame is synced."""

    def __init__(self, segment: Segment, frame: i64) -> None:
        self.segment = segment
        self.frame: i64 = frame


class Rewriter:
    """Rewrites and deletes segments."""

    def __init__(self, host_disk: Disk, owner: DiskOwner, tuning: LogTuning, appender: Appender) -> None:
        self._disk = host_disk
        self._owner = owner
        self._tuning = tuning
        self._appender = appender
        self._victim: Segment | None = None
        self._scanner: Scanner | None = None
        self._reading: DiskWork | None = None
        self._frame: i64 = 0
        """The frame with the last copies; nothing is read until it is synced."""
        self._removals: list[_Removal] = []
        self._removing: dict[str, Segment] = {}
        self._leftovers: list[str] = []
        """Files of no use, which are deleted at the start."""
        self._leftovers_frame: i64 = 0
        self.damaged: list[int] = []
        """Groups that have records which cannot be read, to be told to the owner."""
        self.rewritten: i64 = 0
        """How many segments were rewritten."""

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return self._victim is None and not self._removals and not self._removing

    def discard_later(self, names: list[str], frame: i64) -> None:
        """Delete files of no use once a frame is synced."""
        self._leftovers = names
        self._leftovers_frame = frame

    def step(self) -> bool:
        """Do what can be done now; returns whether anything was done."""
        writer = self._appender.writer
        if writer.failure:
            return False
        acted = self._remove_synced()
        if self._reading is not None or writer.blocked or self._frame > writer.synced:
            return acted
        if self._victim is None:
            return self._choose() or acted
        return self._continue() or acted

    def _choose(self) -> bool:
        """Choose the next segment."""
        segments = self._appender.segments
        if not segments.uneven:
            return False
        victim = segments.victim(self._appender.writer.written)
        if victim is None:
            return False
        if victim.live == 0:
            self._remove(victim)
        else:
            self._victim = victim
            self._scanner = Scanner(
                victim.seed, SEGMENT_BYTES, self._tuning.slice_bytes, _Copier(self._appender, victim)
            )
        return True

    def _continue(self) -> bool:
        """Read the next slice of the segment, or end."""
        victim = self._victim
        scanner = self._scanner
        assert victim is not None, "a segment is being rewritten"
        assert scanner is not None, "a segment is being rewritten"
        if scanner.ended or victim.live == 0:
            self._victim = None
            if victim.live == 0:
                self.rewritten += 1
                self._remove(victim)
            else:
                self._give_up(victim)
            return True
        work = DiskWork(disk.READ, victim.name, self._owner)
        work.offset = scanner.at
        work.size = scanner.want
        self._reading = work
        self._disk.start(work)
        if work.finished:
            self.done(work)
        return True

    def _give_up(self, victim: Segment) -> None:
        """Live records of the segment cannot be read."""
        victim.damaged = True
        for number in sorted(self._appender.groups):
            group = self._appender.groups[number]
            if not group.damaged and group.has_records_in(victim.slot):
                group.damaged = True
                self.damaged.append(number)

    def done(self, work: DiskWork) -> bool:
        """Take the result of work; returns False if it is not of the rewriter."""
        if work.verb == disk.REMOVE:
            segment = self._removing.pop(work.name, None)
            if segment is None:
                return False
            if work.error:
                self._removals.append(_Removal(segment, self._appender.writer.synced + 1))
            else:
                self._appender.segments.discard(segment)
            return True
        if work is not self._reading:
            return False
        self._reading = None
        victim = self._victim
        scanner = self._scanner
        assert victim is not None, "a segment is being rewritten"
        assert scanner is not None, "a segment is being rewritten"
        if work.error:
            scanner.ended = True
            return True
        appender = self._appender
        before = appender.last_frame
        scanner.feed(b"".join(work.data), work.file_bytes)
        if not appender.empty or appender.last_frame != before:
            appender.want_written()
            self._frame = appender.last_frame
            appender.writer.want_synced(self._frame)
        return True

    def _remove(self, segment: Segment) -> None:
        """Delete a segment once everything that was added so far is synced."""
        appender = self._appender
        segment.leaving = True
        appender.add_released()
        if not appender.empty:
            appender.want_written()
        self._removals.append(_Removal(segment, appender.last_frame))
        appender.writer.want_synced(appender.last_frame)

    def _remove_synced(self) -> bool:
        synced = self._appender.writer.synced
        if self._leftovers and self._leftovers_frame <= synced:
            for name in self._leftovers:
                self._disk.start(DiskWork(disk.REMOVE, name))
            self._leftovers = []
        ready = [removal for removal in self._removals if removal.frame <= synced]
        if not ready:
            return False
        self._removals = [removal for removal in self._removals if removal.frame > synced]
        for removal in ready:
            work = DiskWork(disk.REMOVE, removal.segment.name, self._owner)
            self._removing[work.name] = removal.segment
            self._disk.start(work)
            if work.finished:
                self.done(work)
        return True
