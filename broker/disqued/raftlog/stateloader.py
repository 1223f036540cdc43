"""Reads the states of snapshots at a start, one group after the other."""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.host import disk
from disqued.core.host.disk import Disk, DiskOwner, DiskWork
from disqued.raftlog.grouplog import GroupLog
from disqued.raftlog.record import CHUNK, SOUND, RecordReader
from disqued.raftlog.segments import Segments, offset_of, size_of


class StateLoader:
    """Reads the chunks of the snapshots of these groups. `step` begins the next work, `done` takes its result."""

    def __init__(self, host_disk: Disk, owner: DiskOwner, segments: Segments, groups: list[GroupLog]) -> None:
        self._disk = host_disk
        self._owner = owner
        self._segments = segments
        self._groups = groups
        self._at: i64 = 0
        self._parts: list[bytes] = []
        self._seed: i64 = 0
        self._work: DiskWork | None = None

    @property
    def ended(self) -> bool:
        """Whether all groups were taken."""
        return self._at == len(self._groups)

    def take(self) -> GroupLog | None:
        """The next group if its state is complete or lost; `state` has it until the next call."""
        if self.ended or self._work is not None:
            return None
        group = self._groups[self._at]
        if not group.damaged and len(self._parts) < len(group.snapshot.chunks):
            return None
        self._at += 1
        return group

    def state(self) -> bytes:
        """The state of the group that was taken."""
        parts, self._parts = self._parts, []
        return b"".join(parts)

    def step(self) -> DiskWork | None:
        """Read the next chunk, unless one is being read."""
        if self._work is not None or self.ended:
            return None
        place: i64 = self._groups[self._at].snapshot.chunks[len(self._parts)]
        segment = self._segments.of(place)
        self._seed = segment.seed
        work = DiskWork(disk.READ, segment.name, self._owner)
        work.offset = offset_of(place)
        work.size = size_of(place)
        self._work = work
        self._disk.start(work)
        return work

    def done(self, work: DiskWork) -> bool:
        """Take a chunk; returns False if the work is another one."""
        if work is not self._work:
            return False
        self._work = None
        group = self._groups[self._at]
        reader = RecordReader()
        reader.load(b"".join(work.data), self._seed)
        if work.error or reader.parse(0) != SOUND or reader.kind != CHUNK:
            group.damaged = True
            self._parts = []
        else:
            self._parts.append(reader.payload())
        return True
