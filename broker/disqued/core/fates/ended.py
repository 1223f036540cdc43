"""The payload of SETREC: a job has ended, and how.

The ID (40 bytes), how many nodes may have the job as in SETACK (4), for how many seconds the record is kept (4), and
the fate (`core.fates.fate`). Integers are little endian.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.fates.fate import CorruptFate, Fate, fate_bytes, pack_fate, unpack_fate
from disqued.core.jobs.jobid import is_job_id

_HEAD: Final = Struct("<40sII")
_HEAD_BYTES: Final = 48
_MOST_KEPT_S: Final = 366 * 86_400


@mypyc_attr(acyclic=True)
class Ended:
    """What a SETREC says."""

    def __init__(self, job_id: bytes, may_have: i64, keep_ms: i64, fate: Fate) -> None:
        self.job_id = job_id
        self.may_have: i64 = may_have
        self.keep_ms: i64 = keep_ms
        self.fate = fate


def pack_ended(job_id: bytes, fate: Fate, may_have: i64, keep_ms: i64) -> bytes:
    """The payload of a SETREC."""
    keep_s = min(max((keep_ms + 999) // 1000, 0), _MOST_KEPT_S)
    return _HEAD.pack(job_id, may_have, keep_s) + pack_fate(fate)


def unpack_ended(payload: bytes) -> Ended:
    """What a payload says. Raises CorruptFate."""
    if len(payload) < _HEAD_BYTES:
        raise CorruptFate("the payload is cut off")
    job_id, may_have, keep_s = _HEAD.unpack_from(payload)
    fate = unpack_fate(payload, _HEAD_BYTES)
    if not is_job_id(job_id) or keep_s > _MOST_KEPT_S or _HEAD_BYTES + fate_bytes(payload, _HEAD_BYTES) != len(payload):
        raise CorruptFate("it is not about the end of a job")
    return Ended(job_id, may_have, keep_s * 1000, fate)
