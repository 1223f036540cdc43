"""Writes snapshots: the state in chunks, a slice per turn, so that a large one does not delay the entries of others.

A snapshot counts from the record STATE that follows its last chunk. Until then the log is as before: a start in between
finds the snapshot before it, and the chunks are dead bytes.
"""

from __future__ import annotations

from collections import deque

from mypy_extensions import i64

from disqued.raftlog.appender import Appender
from disqued.raftlog.grouplog import GroupLog, Snapshot
from disqued.raftlog.record import CHUNK
from disqued.raftlog.tuning import LogTuning


class _Job:
    """A snapshot that is being written."""

    def __init__(self, group: GroupLog, snapshot: Snapshot, state: bytes, *, install: bool) -> None:
        self.group = group
        self.snapshot = snapshot
        self.state = state
        self.install: bool = install
        """Whether it comes from another replica."""
        self.next: i64 = 0
        """The next chunk."""

    @property
    def over(self) -> bool:
        """Whether it was given up."""
        return self.group.removed or self.group.pending is not self.snapshot


class _Saved:
    """A snapshot that counts once a frame is synced."""

    def __init__(self, frame: i64, group: i64, index: i64) -> None:
        self.frame: i64 = frame
        self.group: i64 = group
        self.index: i64 = index


class Snapshots:
    """The snapshots that are being written, oldest first."""

    def __init__(self, tuning: LogTuning, appender: Appender) -> None:
        self._tuning = tuning
        self._appender = appender
        self._jobs: deque[_Job] = deque()
        self._unsynced: deque[_Saved] = deque()

    @property
    def idle(self) -> bool:
        """Whether every snapshot is written."""
        return not self._jobs

    def save(self, group: GroupLog, index: i64, term: i64, members: bytes, state: bytes, *, install: bool) -> None:
        """Begin to write a snapshot, in place of one of this group that is not complete."""
        group.abandon_pending()
        chunk_bytes = self._tuning.chunk_bytes
        size: i64 = len(state)
        chunks = (size + chunk_bytes - 1) // chunk_bytes
        snapshot = Snapshot(index, term, members, self._appender.stamp(), size, chunks)
        group.pending = snapshot
        group.installing = install
        self._jobs.append(_Job(group, snapshot, state, install=install))

    def write(self) -> None:
        """Write a slice."""
        budget = self._tuning.slice_bytes
        while self._jobs and budget > 0:
            job = self._jobs[0]
            if not job.over:
                budget = self._write(job, budget)
                if budget <= 0 and job.next < len(job.snapshot.chunks):
                    return
                self._complete(job)
            self._jobs.popleft()

    def finish(self, group: GroupLog) -> None:
        """Write all of the snapshot of this group, because more is to follow it."""
        for job in self._jobs:
            if job.group is group and not job.over:
                self._write(job, job.snapshot.state_bytes + 1)
                self._complete(job)
                return

    def _write(self, job: _Job, budget: i64) -> i64:
        """Write chunks; returns what is left of the budget."""
        snapshot = job.snapshot
        chunk_bytes = self._tuning.chunk_bytes
        segments = self._appender.segments
        while budget > 0 and job.next < len(snapshot.chunks):
            start = job.next * chunk_bytes
            data = job.state[start : start + chunk_bytes]
            place = self._appender.add(CHUNK, 0, job.group.number, snapshot.term, job.next, snapshot.stamp, data)
            if place == 0:
                return 0
            snapshot.chunks[job.next] = place
            segments.gain(place)
            job.next += 1
            budget -= len(data)
        return budget

    def _complete(self, job: _Job) -> None:
        """The snapshot takes the place of what it covers."""
        group = job.group
        snapshot = job.snapshot
        if job.install:
            group.install(snapshot)
        elif snapshot.index <= group.last and snapshot.index > group.snapshot.index:
            group.advance(snapshot)
        else:
            group.abandon_pending()  # a snapshot of another replica was faster
            return
        self._appender.add_state(group)
        self._unsynced.append(_Saved(self._appender.last_frame, group.number, snapshot.index))

    def take_saved(self) -> list[tuple[i64, i64]]:
        """Group and index of the snapshots that were synced since the last call."""
        saved: list[tuple[i64, i64]] = []
        synced = self._appender.writer.synced
        while self._unsynced and self._unsynced[0].frame <= synced:
            first = self._unsynced.popleft()
            if first.group in self._appender.groups:
                saved.append((first.group, first.index))
        return saved
