"""Records of the append only file: requests as on the client protocol, one behind the other.

`LOADJOB <job>` keeps a job, `DELJOB <id>` forgets one, both as the original writes them. Two things are ours, and the
original's loader takes them: `PAUSE <queue> <what>`, a command like others, and eight bytes behind the job inside a
LOADJOB, where its decoder stops reading: a mark and the CRC-32 of the job. They tell a job that was damaged on disk
from one that was written.
"""

from __future__ import annotations

from struct import Struct
from typing import Final
from zlib import crc32

from mypy_extensions import i64

from disqued.core.cluster.holders import Holders
from disqued.core.jobs.codec import pack_for_disk
from disqued.core.jobs.job import ACTIVE, BCAST_QUEUED, DELIVERED, QUEUED, Job

SUM_MARK: Final = b"CRC#"
_SUM: Final = Struct("<I")
SUM_BYTES: Final = 8

_FORGET: Final = b"*2\r\n$6\r\nDELJOB\r\n$40\r\n%b\r\n"
_KEEP: Final = b"*2\r\n$7\r\nLOADJOB\r\n$%d\r\n"


def stored_state(job: Job, *, handed_on: bool) -> i64:
    """The state in which a job is to be found; `handed_on`: by the next run, which has all from this file.

    An at-most-once job counts as active in a file that goes on to be written: who reads it after a crash can not know
    whether the job was delivered since. A file that is handed on says that it is queued; and also that it waits for
    its delay, as a queued job without the mark of the first queueing.
    """
    if job.retry_s > 0:
        return i64(job.state)
    if not handed_on:
        return ACTIVE
    waits = job.delay_s > 0 and job.requeue_at_ms > 0 and job.flags & (BCAST_QUEUED | DELIVERED) == 0
    return QUEUED if job.state == QUEUED or waits else ACTIVE


def head(size: i64) -> bytes:
    """What stands before the bytes of a LOADJOB: the job, and its sum if it has one."""
    return _KEEP % size


def keep(job: Job, holders: Holders, node_id: bytes, state: i64, *, with_sum: bool) -> bytes:
    """The record that keeps a job; `state` is the one it is to be found in."""
    delivered = job.delivered
    packed = pack_for_disk(job, state, holders.pack((node_id,) if delivered is None else delivered))
    if with_sum:
        packed += SUM_MARK + _SUM.pack(crc32(packed))
    return b"".join((head(len(packed)), packed, b"\r\n"))


def forget(job_id: bytes) -> bytes:
    """The record that forgets a job."""
    return _FORGET % job_id
