"""The record LOGENTRY in the append-only file, as words: an entry of the progress log of a job."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from disqued.core.jobs.claims import MOST
from disqued.core.jobs.jobid import is_job_id
from disqued.progress.payload import MAX_SEQ

if TYPE_CHECKING:
    from disqued.core.jobs.joblog import LogLine
    from disqued.core.lifecycle.records import Words

LOG_RECORD: Final = b"LOGENTRY"
_CONTENT: Final = re.compile(rb"(\S{40}) (\d{1,19}) (\d{1,10}) (\d{1,18}) (.*)", re.DOTALL)
"""The content of a record: ID, claim, sequence number, unix milliseconds, entry."""


def words_of(job_id: bytes, line: LogLine) -> Words:
    """The record of an entry."""
    claim, seq, at_ms, entry = line
    return (LOG_RECORD, b"%b %d %d %d %b" % (job_id, claim, seq, at_ms, entry))


def parse_record(content: bytes) -> tuple[bytes, LogLine]:
    """The job ID and the entry in the content of a valid record."""
    found = _CONTENT.fullmatch(content)
    assert found is not None
    return found[1], (int(found[2]), int(found[3]), int(found[4]), found[5])


def record_fault(words: list[bytes]) -> str:
    """Return what is wrong with a LOGENTRY record; empty if nothing is."""
    found = _CONTENT.fullmatch(words[1])
    if found is not None and is_job_id(found[1]) and int(found[2]) <= MOST and int(found[3]) <= MAX_SEQ:
        return ""
    return f"LOGENTRY with {words[1][:80]!r} instead of a job ID, three numbers and an entry"
