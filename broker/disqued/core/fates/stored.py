"""The record of a finished job as it stands in the append-only file (RECORD).

Its content is a line of text, so that it can be read in a dump, and behind it the queue, the result and the progress
log. The line has the ID of the job, the ID of the first job of its chain, the outcome, the unix milliseconds of the end
and of the end of the record, claim, moves, successor or `-`, length of the queue, length of the result or `-`, the
number of entries of the progress log, and a line end. An entry is a line with its claim, sequence number, unix
milliseconds and length, and the entry as it is.
"""

from __future__ import annotations

import re
from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.fates.fate import MAX_RESULT_BYTES, OUTCOMES, WAITING, Fate
from disqued.core.jobs.claims import MOST
from disqued.core.jobs.jobid import is_job_id
from disqued.core.jobs.joblog import ADDED, JobLog

RECORD: Final = b"RECORD"
"""The name of the kind of record."""
_LINE: Final = re.compile(
    rb"(\S{40}) (\S{40}) ([a-z]+) (\d{1,18}) (\d{1,18}) (\d{1,19}) (\d{1,9}) (\S{40}|-) (\d{1,9}) (\d{1,5}|-)"
    rb" (\d{1,6})\n"
)
_ENTRY: Final = re.compile(rb"(\d{1,19}) (\d{1,10}) (\d{1,18}) (\d{1,8})\n")
_MOST_SEQ: Final = (1 << 31) - 1


@mypyc_attr(acyclic=True)
class Stored:
    """What a RECORD says; times are those of the wall clock."""

    def __init__(
        self, job_id: bytes, queue: bytes, origin: bytes, fate: Fate, until_ms: i64, log: JobLog | None
    ) -> None:
        self.job_id = job_id
        self.queue = queue
        self.origin = origin
        self.fate = fate
        self.until_ms: i64 = until_ms
        self.log = log


def store(
    job_id: bytes, queue: bytes, origin: bytes, fate: Fate, until_ms: i64, ahead_ms: i64, log: JobLog | None = None
) -> bytes:
    """The content of the RECORD of a job; the wall clock is ahead of the node's time by so many milliseconds."""
    result = fate.result
    ended_ms: i64 = fate.ended_ms + ahead_ms if fate.ended_ms > 0 else 0
    lines = [] if log is None else log.lines()
    line = b"%b %b %b %d %d %d %d %b %d %b %d\n" % (
        job_id,
        origin,
        fate.name,
        max(ended_ms, 0),
        max(until_ms + ahead_ms, 0),
        fate.claim,
        fate.moves,
        fate.successor or b"-",
        len(queue),
        b"-" if result is None else b"%d" % len(result),
        len(lines),
    )
    entries = [b"%d %d %d %d\n%b" % (claim, seq, at_ms, len(entry), entry) for claim, seq, at_ms, entry in lines]
    return line + queue + (result or b"") + b"".join(entries)


def fault_of(content: bytes) -> str:
    """What is wrong with the content of a RECORD; empty if nothing is."""
    return "" if stored(content) is not None else f"RECORD with {content[:80]!r} instead of the end of a job"


def stored(content: bytes) -> Stored | None:
    """What the content of a RECORD says; None if it is malformed."""
    found = _LINE.match(content)
    if found is None:
        return None
    job_id, origin, outcome, ended_ms, until_ms, claim, moves, successor, *sizes = found.groups()
    queue_bytes, result_bytes, entries = sizes
    if not is_job_id(job_id) or not is_job_id(origin) or outcome not in OUTCOMES[WAITING + 1 :]:
        return None
    if int(claim) > MOST or (successor != b"-" and not is_job_id(successor)):
        return None
    at = found.end()
    end = at + int(queue_bytes)
    queue = content[at:end]
    at = end
    end += 0 if result_bytes == b"-" else int(result_bytes)
    result = None if result_bytes == b"-" else content[at:end]
    log = _stored_log(content, end, int(entries)) if end <= len(content) else None
    if log is None or (result is not None and len(result) > MAX_RESULT_BYTES):
        return None
    fate = Fate(
        OUTCOMES.index(outcome),
        int(ended_ms),
        int(claim),
        int(moves),
        None if successor == b"-" else successor,
        result,
    )
    return Stored(job_id, queue, origin, fate, int(until_ms), log if log.count > 0 else None)


def _stored_log(content: bytes, at: int, count: int) -> JobLog | None:
    """The progress log of so many entries at the end of a content; None if it is malformed."""
    log = JobLog()
    for _ in range(count):
        found = _ENTRY.match(content, at)
        if found is None:
            return None
        claim, seq, at_ms, size = map(int, found.groups())
        at = found.end() + size
        if at > len(content) or claim > MOST or seq > _MOST_SEQ:
            return None
        if log.add((claim, seq, at_ms, content[found.end() : at]), count, len(content)) != ADDED:
            return None
    return log if at == len(content) else None
