"""The payloads of LOGENTRY, GOTENTRY and LOGASK. Integers are big endian."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Final

from disqued.core.jobs.claims import MOST
from disqued.core.jobs.jobid import JOB_ID_BYTES, is_job_id
from disqued.core.jobs.joblog import LogLine

MAX_SEQ: Final = (1 << 31) - 1
_ENTRY: Final = Struct(f">{JOB_ID_BYTES}sqiqB")
"""Job ID, claim, sequence number, unix milliseconds, purpose; the entry follows."""
_GOT: Final = Struct(f">{JOB_ID_BYTES}sqiB")
"""Job ID, claim, sequence number, outcome."""

PAST: Final = 0
NEW: Final = 1
LAST: Final = 2
"""The purposes of a LOGENTRY: an entry of the past, a new one, or the last one of the past; the latter two want
GOTENTRY. Only a new entry is refused because its claim is stale."""

HAS_IT: Final = 0
HAS_OTHER: Final = 1
HAS_NO_ROOM: Final = 2
IS_STALE: Final = 3
NO_JOB: Final = 4
ALL: Final = 5
"""The outcomes in GOTENTRY. ALL ends the answer to LOGASK."""


class MalformedError(Exception):
    """A payload is not valid."""


@dataclass(frozen=True)
class SentEntry:
    """A LOGENTRY."""

    job_id: bytes
    line: LogLine
    purpose: int


@dataclass(frozen=True)
class Got:
    """A GOTENTRY."""

    job_id: bytes
    claim: int
    seq: int
    outcome: int


def pack_entry(job_id: bytes, line: LogLine, purpose: int) -> bytes:
    """The payload of LOGENTRY."""
    claim, seq, at_ms, entry = line
    return _ENTRY.pack(job_id, claim, seq, at_ms, purpose) + entry


def unpack_entry(payload: bytes) -> SentEntry:
    """The contents of a LOGENTRY. Raises MalformedError."""
    if len(payload) < _ENTRY.size:
        raise MalformedError
    job_id, claim, seq, at_ms, purpose = _ENTRY.unpack_from(payload)
    if not is_job_id(job_id) or not 0 <= claim <= MOST or seq < 0 or at_ms < 0:
        raise MalformedError
    return SentEntry(job_id, (claim, seq, at_ms, payload[_ENTRY.size :]), purpose)


def pack_got(got: Got) -> bytes:
    """The payload of GOTENTRY."""
    return _GOT.pack(got.job_id, got.claim, got.seq, got.outcome)


def unpack_got(payload: bytes) -> Got:
    """The contents of a GOTENTRY. Raises MalformedError."""
    if len(payload) != _GOT.size:
        raise MalformedError
    got = Got(*_GOT.unpack(payload))
    if not is_job_id(got.job_id):
        raise MalformedError
    return got
