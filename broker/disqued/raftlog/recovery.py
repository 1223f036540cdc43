"""Reads the log at a start, in reads of bounded size: which groups there are and where their live records are.

1. The names of all segments, and the data ID of the newest one that has it.
2. The newest segment (`lastsegment`); if it was not begun completely, the one before it. A torn end is cut off, so that
   nothing of it is ever taken for a record that counts.
3. All segments, newest first (`bodies`). Every record is checked, no body is kept.

Then the log begins a new segment, so what may not be on the disk is never appended to. Entries are not replayed here:
the commit index is learned from the leader later, and until then no entry above the snapshot may be applied. So the
owner fetches entries when it applies them, which reads the newest few segments again; a callback for each entry here
would have to keep them in memory instead.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.host import disk
from disqued.core.host.disk import VERB_NAMES, Disk, DiskOwner, DiskWork
from disqued.raft.entry import Entry
from disqued.raft.hardstate import HardState
from disqued.raftlog.bodies import Bodies
from disqued.raftlog.grouplog import GroupLog
from disqued.raftlog.lastsegment import LastSegment
from disqued.raftlog.owner import RecoveredGroup
from disqued.raftlog.record import SEGMENT_BYTES, data_id_of
from disqued.raftlog.scan import Scanner
from disqued.raftlog.segments import PREFIX, Segment, Segments, name_of, number_of
from disqued.raftlog.tuning import LogTuning

_LIST: Final = 0
_IDENTIFY: Final = 1
_LAST: Final = 2
_CUT: Final = 3
_FIND: Final = 4
_BODIES: Final = 5
_DONE: Final = 6


class Recovery:
    """One start of the log. `step` begins the next work, `done` takes its result."""

    def __init__(self, host_disk: Disk, owner: DiskOwner, tuning: LogTuning, segments: Segments) -> None:
        self._disk = host_disk
        self._owner = owner
        self._tuning = tuning
        self._segments = segments
        self._phase: i64 = _LIST
        self._work: DiskWork | None = None
        self._numbers: list[int] = []
        """The segments that are still to be read, ascending."""
        self._candidate: i64 = 0
        """Position in `_numbers` of the segment that may say what the data ID is."""
        self._newest: i64 = 0
        self._last = LastSegment(segments)
        self._bodies = Bodies({})
        self._segment: Segment | None = None
        self._scanner: Scanner | None = None
        self.highest: i64 = 0
        """The highest number that a segment has or had; 0 without segments."""
        self.data_id = b""
        """Empty if the log begins from nothing."""
        self.lost: bool = False
        """Whether there was a log, of which nothing can be used."""
        self.leftovers: list[str] = []
        """Files that can be deleted."""
        self.failure = ""
        self.notes: list[str] = []
        """What an operator should know, for the log of the node."""

    @property
    def ended(self) -> bool:
        """Whether everything was read."""
        return self._phase == _DONE

    @property
    def groups(self) -> dict[int, GroupLog]:
        """The groups that were found."""
        return self._last.groups

    @property
    def bodies(self) -> Bodies:
        """What must be copied, and the MEMBERS entries."""
        return self._bodies

    def step(self) -> DiskWork | None:
        """Begin the next work, unless one is under way."""
        if self._work is not None or self.failure or self._phase == _DONE:
            return None
        if self._phase == _LIST:
            work = DiskWork(disk.LIST, PREFIX, self._owner)
        elif self._phase == _IDENTIFY or self._phase == _FIND:
            position = self._candidate if self._phase == _IDENTIFY else i64(len(self._numbers)) - 1
            work = DiskWork(disk.READ, name_of(self._numbers[position]), self._owner)
            work.size = SEGMENT_BYTES
        elif self._phase == _CUT:
            work = DiskWork(disk.TRUNCATE, name_of(self._newest), self._owner)
            work.size = self._last.cut
        else:
            scanner = self._scanner
            segment = self._segment
            assert scanner is not None, "a segment is being read"
            assert segment is not None, "a segment is being read"
            work = DiskWork(disk.READ, segment.name, self._owner)
            work.offset = scanner.at
            work.size = scanner.want
        self._work = work
        self._disk.start(work)
        return work

    def done(self, work: DiskWork) -> bool:
        """Take the result of the work; returns False if it is another one."""
        if work is not self._work:
            return False
        self._work = None
        if work.error and self._phase != _BODIES:
            self.failure = f"can't {VERB_NAMES[work.verb]} {work.name}: {work.error}"
        elif self._phase == _LIST:
            self._listed(work)
        elif self._phase == _IDENTIFY:
            self._identify(b"".join(work.data))
        elif self._phase == _FIND:
            self._found(b"".join(work.data), work.file_bytes)
        elif self._phase == _CUT:
            self._find()
        else:
            self._scanned(work)
        return True

    # --- phases -------------------------------------------------------------------------------------------------------

    def _listed(self, work: DiskWork) -> None:
        self._numbers = [
            number for number in [number_of(name.decode("utf-8", "replace")) for name in work.data] if number
        ]
        self._numbers.sort()
        if not self._numbers:
            self._phase = _DONE
            return
        self.highest = self._numbers[-1]
        self._candidate = i64(len(self._numbers)) - 1
        self._phase = _IDENTIFY

    def _identify(self, start: bytes) -> None:
        self.data_id = data_id_of(start, self._numbers[self._candidate])
        if self.data_id:
            self._read_last()
        elif self._candidate == 0:
            self._lose_all()
        else:
            self._candidate -= 1

    def _lose_all(self) -> None:
        """Nothing can be used."""
        self.lost = True
        self.data_id = b""
        self._last = LastSegment(self._segments)
        self._bodies = Bodies({})
        self.leftovers += [name_of(number) for number in self._numbers]
        self._phase = _DONE

    def _read_last(self) -> None:
        """Read the newest segment."""
        self._newest = self._numbers[-1]
        self._last = LastSegment(self._segments)
        self._segment = Segment(self._newest, 0, self.data_id)
        self._scanner = Scanner(self._segment.seed, SEGMENT_BYTES, self._tuning.read_bytes, self._last)
        self._phase = _LAST

    def _find(self) -> None:
        """Continue with the newest segment of which the live records were not looked for."""
        self._phase = _FIND if self._numbers else _DONE
        if self._phase == _DONE:
            self._conclude()

    def _found(self, start: bytes, file_bytes: i64) -> None:
        """The beginning of a segment was read."""
        number: i64 = self._numbers.pop()
        data_id = data_id_of(start, number)
        if data_id and data_id != self.data_id:
            self.notes.append(f"{name_of(number)} belongs to another log and is deleted")
            self.leftovers.append(name_of(number))
            self._find()
            return
        segment = self._segments.add(number, self.data_id)
        if segment is None:
            self.failure = "there are too many segments"
            return
        segment.size = file_bytes
        self._segment = segment
        self._bodies.segment = segment
        self._bodies.proven = self._last.proven if number == self._newest else file_bytes
        self._scanner = Scanner(segment.seed, SEGMENT_BYTES, self._tuning.read_bytes, self._bodies)
        self._phase = _BODIES

    def _scanned(self, work: DiskWork) -> None:
        """A part of a segment was read."""
        scanner = self._scanner
        assert scanner is not None, "a segment is being read"
        if work.error:  # live records in the rest of the file are missing
            self.notes.append(f"can't read {work.name} from {work.offset} on: {work.error}")
            self._find()
            return
        scanner.feed(b"".join(work.data), work.file_bytes)
        if not scanner.ended:
            return
        if self._phase == _BODIES:
            self._find()
            return
        last = self._last
        last.end(work.file_bytes)
        if last.lost:
            self._lose_all()
        elif not last.usable:
            self.leftovers.append(name_of(self._numbers.pop()))
            if self._numbers:
                self._read_last()
            else:
                self._lose_all()
        else:
            self._bodies = Bodies(last.groups)
            if last.cut < last.end_bytes:
                self.notes.append(f"cut off the torn end of {work.name}, {last.end_bytes - last.cut} bytes")
                self._phase = _CUT
            else:
                self._find()

    def _conclude(self) -> None:
        """Everything was read."""
        for place in self._bodies.damaged:
            self.notes.append(f"damaged: {place}")
        for group in self.groups.values():
            if group.missing() > 0:
                group.damaged = True

    def forget(self) -> None:
        """Free what is needed no more."""
        self._last = LastSegment(self._segments)
        self._bodies = Bodies({})
        self._scanner = None

    # --- the result ---------------------------------------------------------------------------------------------------

    def describe(self, group: GroupLog) -> RecoveredGroup:
        """What the log has of a group, without the state of its snapshot."""
        found = RecoveredGroup(group.number)
        found.damaged = group.damaged
        found.hard = HardState(group.hard_term, group.vote)
        found.snapshot_index = group.snapshot.index
        found.snapshot_term = group.snapshot.term
        found.snapshot_members = group.snapshot.members
        found.last_index = group.last
        found.terms = [(group.starts[number], group.terms[number]) for number in range(len(group.starts))]
        found.member_entries = sorted(self._bodies.members.get(group.number, {}).values(), key=_index)
        return found


def _index(entry: Entry) -> i64:
    return entry.index
