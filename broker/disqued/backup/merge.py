"""Merges the copies of the members: which jobs there are, and which of the records in the copies is used for each.

The copies are read twice, one after the other: `Merge.take` decides, `Merge.job` makes the jobs. Only what a decision
needs is in memory, and only for the jobs that are wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from disqued.backup.errors import BackupError
from disqued.core.jobs.attributes import Attributes, with_claim
from disqued.core.jobs.attributes import merged as merged_attributes
from disqued.core.jobs.codec import CorruptJob, Unpacked
from disqued.core.jobs.job import BCAST_QUEUED, BCAST_WILLQUEUE, DELIVERED, QUEUED, Job
from disqued.core.jobs.jobid import JOB_ID_BYTES
from disqued.core.lifecycle.records import RecordFormat, Words
from disqued.core.runtime.recordkind import record_table
from disqued.delivery.claim import CLAIM_RECORD
from disqued.delivery.claim import parse_record as parse_claim_record
from disqued.delivery.postpone import POSTPONE_RECORD, parse_record
from disqued.node import ROOMS
from disqued.persistence.backup import MOVED
from disqued.persistence.parse import DELJOB, FORMAT, LOADJOB, Entry, job_of
from disqued.persistence.reader import EntryReader

_PAUSE: Final = b"PAUSE"
_PAUSES: Final = {
    frozenset[bytes](): b"none",
    frozenset({b"in"}): b"in",
    frozenset({b"out"}): b"out",
    frozenset({b"in", b"out"}): b"all",
}
_PARTS: Final = {b"none": frozenset[bytes](), b"in": {b"in"}, b"out": {b"out"}, b"all": {b"in", b"out"}}
_TABLE: Final = record_table(ROOMS.records)
_TABLE.add(
    RecordFormat(
        MOVED, 2, lambda words: "" if len(words[1]) == JOB_ID_BYTES else "MOVED with something else than an ID"
    )
)


def entries(parts: Iterable[bytes], what: str) -> Iterator[Entry]:
    """Yield the records of a copy. Raises BackupError at the first damage: a backup has none."""
    reader = EntryReader(_TABLE)
    for part in parts:
        reader.feed(part)
        yield from _sound(reader, what)
    reader.end()
    yield from _sound(reader, what)


def _sound(reader: EntryReader, what: str) -> Iterator[Entry]:
    while (item := reader.next()) is not None:
        if not isinstance(item, Entry):
            raise BackupError(f"{what} is damaged at byte {item.offset}: {item.why}")
        yield item


def unpacked(entry: Entry, what: str) -> Unpacked:
    """The job of a LOADJOB."""
    try:
        return job_of(entry)
    except CorruptJob as error:
        raise BackupError(f"{what} is damaged at byte {entry.offset}: {error}") from error


class _Seen:
    """What the copies say about one job."""

    __slots__ = ("copy", "deliveries", "extra", "finished_in", "flags", "nacks", "offset", "queued", "until_ms")

    def __init__(self) -> None:
        self.finished_in = -1
        """The copy that says that it is finished; -1 if none does."""
        self.copy = -1
        """The copy with the record that is used; -1 if there is none."""
        self.offset = 0
        self.queued = False
        self.flags = BCAST_QUEUED
        """BCAST_QUEUED if all copies have it, DELIVERED if any has it."""
        self.nacks = 0
        self.deliveries = 0
        self.extra: Attributes | None = None
        """The attributes of all records."""
        self.until_ms = 0
        """The latest time until which a copy has the job wait, in unix milliseconds; 0 if none does."""


class Outcome(StrEnum):
    """What becomes of a job."""

    RESTORED = "restored"
    FINISHED = "finished"
    EXPIRED = "expired"
    AT_MOST_ONCE = "at-most-once"
    """Left out, because it may have been delivered after the backup."""


@dataclass(frozen=True)
class Merged:
    """A job, merged from all copies."""

    job: Job
    queued: bool
    outcome: Outcome
    until_ms: int = 0
    """When a job may be queued that a worker gave back for later, in unix milliseconds; 0 for other jobs."""


@dataclass
class Merge:
    """The merge of the copies of one backup, of the jobs that `wanted` selects by ID and number of copies."""

    now_s: int
    queue_at_most_once: bool = False
    wanted: Callable[[bytes, int], bool] = lambda _id, _copies: True
    _seen: dict[bytes, _Seen] = field(default_factory=dict)
    _settings: dict[bytes, dict[bytes, Words]] = field(default_factory=dict)

    def take(self, copy: int, records: Iterable[Entry], what: str) -> None:
        """Read copy number `copy`, after those with lower numbers."""
        settings: dict[tuple[bytes, bytes], Words] = {}
        for entry in records:
            words = entry.words
            if words[0] == LOADJOB:
                found = unpacked(entry, what)
                if self.wanted(found.job.id, int(found.job.repl)):
                    self._take_job(copy, entry, found)
            elif words[0] in {DELJOB, MOVED}:
                self._take_end(copy, words[1], finished=words[0] == DELJOB)
            elif words[0] == POSTPONE_RECORD:
                self._take_delay(entry)
            elif words[0] == CLAIM_RECORD:
                self._take_claim(entry)
            elif words[0] != FORMAT:  # the new file says itself which format it has
                settings[words[0], words[1]] = tuple(words)
        for (kind, name), last in settings.items():
            self._take_setting(kind, name, last)

    def _take_job(self, copy: int, entry: Entry, found: Unpacked) -> None:
        job = found.job
        seen = self._seen.setdefault(job.id, _Seen())
        if seen.finished_in == copy:
            seen.finished_in = -1  # it came back to this member
        queued = found.state == QUEUED
        if seen.copy < 0 or (queued and not seen.queued):
            seen.copy, seen.offset = copy, int(entry.offset)
        seen.queued |= queued
        seen.flags = (seen.flags & job.flags & BCAST_QUEUED) | ((seen.flags | job.flags) & DELIVERED)
        seen.nacks = max(seen.nacks, int(job.nacks))
        seen.deliveries = max(seen.deliveries, int(job.additional_deliveries))
        seen.extra = merged_attributes(seen.extra, job.extra)

    def _take_delay(self, entry: Entry) -> None:
        """Note the delay of a job. It follows the record of its job."""
        assert entry.format is not None
        words = entry.format.opened(entry.words)
        assert words is not None  # the reader would have found damage
        job_id, until_ms, nacks = parse_record(words[1])
        seen = self._seen.get(job_id)
        if seen is not None:
            seen.until_ms = max(seen.until_ms, until_ms)
            seen.nacks = max(seen.nacks, nacks)

    def _take_claim(self, entry: Entry) -> None:
        """Note a claim of a job. It follows the record of its job."""
        assert entry.format is not None
        words = entry.format.opened(entry.words)
        assert words is not None  # the reader would have found damage
        job_id, claim = parse_claim_record(words[1])
        seen = self._seen.get(job_id)
        if seen is not None:
            seen.extra = merged_attributes(seen.extra, with_claim(None, claim))

    def _take_end(self, copy: int, job_id: bytes, *, finished: bool) -> None:
        seen = self._seen.setdefault(job_id, _Seen())
        if seen.finished_in < 0 and finished:
            seen.finished_in = copy
        elif seen.finished_in == copy and not finished:
            seen.finished_in = -1

    def _take_setting(self, kind: bytes, name: bytes, words: Words) -> None:
        """Combine a setting with that of the other members: a queue is paused if it is on any of them."""
        known = self._settings.setdefault(kind, {})
        former = known.get(name)
        if former is None:
            known[name] = words
        elif kind == _PAUSE:
            known[name] = (kind, name, _PAUSES[frozenset({*_PARTS[former[2]], *_PARTS[words[2]]})])

    @property
    def settings(self) -> list[Words]:
        """The records that are not of jobs."""
        return [words for known in self._settings.values() for words in known.values()]

    def job(self, copy: int, entry: Entry, what: str) -> Merged | None:
        """The job that a record of the second reading stands for; None if it is another record."""
        if entry.words[0] != LOADJOB:
            return None
        job = unpacked(entry, what).job
        seen = self._seen.get(job.id)
        if seen is None or (seen.copy, seen.offset) != (copy, int(entry.offset)):
            return None
        # Queued without the flag means of an at-most-once job that it waits for its delay (docs/protocol/aof.md).
        was_queued = bool(seen.flags) or (seen.queued and job.retry_s > 0)
        job.flags = BCAST_WILLQUEUE | BCAST_QUEUED if was_queued else BCAST_WILLQUEUE
        job.nacks, job.additional_deliveries = seen.nacks, seen.deliveries
        job.extra = seen.extra
        return Merged(job, seen.queued, self._outcome(job, seen), 0 if seen.queued else seen.until_ms)

    def _outcome(self, job: Job, seen: _Seen) -> Outcome:
        if seen.finished_in >= 0 or (job.retry_s == 0 and seen.flags & DELIVERED):
            return Outcome.FINISHED
        if job.expire_at_s <= self.now_s:
            return Outcome.EXPIRED
        if job.retry_s == 0 and not (self.queue_at_most_once and seen.queued):
            return Outcome.AT_MOST_ONCE
        return Outcome.RESTORED

    def unfinished(self) -> int:
        """How many jobs are not finished, whether or not they would be restored."""
        return sum(seen.finished_in < 0 and seen.copy >= 0 for seen in self._seen.values())
