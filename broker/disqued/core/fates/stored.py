"""The record of a finished job as it stands in the append-only file (RECORD).

Its content is a line of text, so that it can be read in a dump, and behind it the queue and the result as they are. The
line has the ID of the job, the ID of the first job of its chain, the outcome, the unix milliseconds of the end and of
the end of the record, claim, moves, successor or `-`, length of the queue, length of the result or `-`, and a line end.
"""

from __future__ import annotations

import re
from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.fates.fate import MAX_RESULT_BYTES, OUTCOMES, WAITING, Fate
from disqued.core.jobs.jobid import is_job_id

RECORD: Final = b"RECORD"
"""The name of the kind of record."""
_LINE: Final = re.compile(
    rb"(\S{40}) (\S{40}) ([a-z]+) (\d{1,18}) (\d{1,18}) (\d{1,18}) (\d{1,9}) (\S{40}|-) (\d{1,9}) (\d{1,5}|-)\n"
)


@mypyc_attr(acyclic=True)
class Stored:
    """What a RECORD says; times are those of the wall clock."""

    def __init__(self, job_id: bytes, queue: bytes, origin: bytes, fate: Fate, until_ms: i64) -> None:
        self.job_id = job_id
        self.queue = queue
        self.origin = origin
        self.fate = fate
        self.until_ms: i64 = until_ms


def store(job_id: bytes, queue: bytes, origin: bytes, fate: Fate, until_ms: i64, ahead_ms: i64) -> bytes:
    """The content of the RECORD of a job; the wall clock is ahead of the node's time by so many milliseconds."""
    result = fate.result
    ended_ms: i64 = fate.ended_ms + ahead_ms if fate.ended_ms > 0 else 0
    line = b"%b %b %b %d %d %d %d %b %d %b\n" % (
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
    )
    return line + queue + (result or b"")


def fault_of(content: bytes) -> str:
    """What is wrong with the content of a RECORD; empty if nothing is."""
    return "" if stored(content) is not None else f"RECORD with {content[:80]!r} instead of the end of a job"


def stored(content: bytes) -> Stored | None:
    """What the content of a RECORD says; None if it is malformed."""
    found = _LINE.match(content)
    if found is None:
        return None
    job_id, origin, outcome, ended_ms, until_ms, claim, moves, successor, queue_bytes, result_bytes = found.groups()
    if not is_job_id(job_id) or not is_job_id(origin) or outcome not in OUTCOMES[WAITING + 1 :]:
        return None
    if successor != b"-" and not is_job_id(successor):
        return None
    at = found.end()
    queue = content[at : at + int(queue_bytes)]
    result = None if result_bytes == b"-" else content[at + len(queue) :]
    size = at + int(queue_bytes) + (0 if result is None else int(result_bytes))
    if size != len(content) or (result is not None and len(result) > MAX_RESULT_BYTES):
        return None
    fate = Fate(
        OUTCOMES.index(outcome),
        int(ended_ms),
        int(claim),
        int(moves),
        None if successor == b"-" else successor,
        result,
    )
    return Stored(job_id, queue, origin, fate, int(until_ms))
