"""The records of jobs in the append-only file: requests as on the client protocol, one after another.

`LOADJOB <job>` keeps a job and `DELJOB <id>` drops one, both as the original writes them. After the job inside a
LOADJOB, where the original's decoder stops reading, we add its attributes, if it has any, and eight bytes: a mark and
the CRC-32 of what is before it. They tell a job that was damaged on disk from a sound one. Other records belong to the
rooms (`core.runtime.recordkind`).
"""

from __future__ import annotations

from struct import Struct
from typing import Final
from zlib import crc32

from mypy_extensions import i64

from disqued.core.cluster.holders import Holders
from disqued.core.jobs.codec import pack_for_disk
from disqued.core.jobs.job import ACTIVE, BCAST_QUEUED, DELIVERED, QUEUED, Job
from disqued.core.lifecycle.records import SUM_MARK
from disqued.releases import EXTENDED_FORMAT

_SUM: Final = Struct("<I")
FORGET: Final = b"*2\r\n$6\r\nDELJOB\r\n$40\r\n"
"""The bytes of a DELJOB before the ID."""
_KEEP: Final = b"*2\r\n$7\r\nLOADJOB\r\n$%d\r\n"
EXTENDED: Final = b"*2\r\n$6\r\nFORMAT\r\n$1\r\n%d\r\n" % EXTENDED_FORMAT
"""The record before the first one that the first format does not have."""


def stored_state(job: Job, *, controlled: bool) -> i64:
    """The state that the record of a job has; `controlled`: in the file of a controlled shutdown.

    An at-most-once job is active in a file that is still written: after a crash, a node cannot know whether the job was
    delivered since. In the file of a controlled shutdown it is queued. One that waits for its delay is queued without
    the flag of its first queueing.
    """
    if job.retry_s > 0:
        return i64(job.state)
    if not controlled:
        return ACTIVE
    waits = job.delay_s > 0 and job.requeue_at_ms > 0 and job.flags & (BCAST_QUEUED | DELIVERED) == 0
    return QUEUED if job.state == QUEUED or waits else ACTIVE


def head(size: i64) -> bytes:
    """The bytes of a LOADJOB before a job of this size, checksum included."""
    return _KEEP % size


def keep(job: Job, holders: Holders, node_id: bytes, state: i64, *, with_sum: bool, ahead_s: i64 = 0) -> bytes:
    """The record that keeps a job in this state. `ahead_s`: how far the wall clock is ahead of the node's time.

    The record of a job with attributes always has a checksum.
    """
    delivered = job.delivered
    packed = pack_for_disk(job, state, holders.pack((node_id,) if delivered is None else delivered), ahead_s)
    if with_sum or job.extra is not None:
        packed += SUM_MARK + _SUM.pack(crc32(packed))
    return b"".join((head(len(packed)), packed, b"\r\n"))


def forget(job_id: bytes) -> bytes:
    """The record that drops a job."""
    return FORGET + job_id + b"\r\n"
