"""The serialised form of a job, as it is sent over the cluster bus and written to disk.

All integers are little endian; sizes are in bytes. The fields are the length of the rest (4), ID (40), state and GC
attempts (1), flags (1), copies (2), expiry (4), creation (8), delay (4), retry (4), NACKs (2) and deliveries (2), then
queue, body and holders, each preceded by its length or count (4) (Disque `serializeJob`). On the bus, the expiry is the
seconds left plus one, and the flag DELIVERED is not sent. The attributes of a job, if it has any, follow it
(`attributes`).
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from mypy_extensions import i32, i64, mypyc_attr, u8

from disqued.bus.frame import NODE_ID_BYTES
from disqued.core.jobs.attributes import MARK_END, CorruptAttributes, block_bytes, unpack_block
from disqued.core.jobs.job import BCAST_QUEUED, BCAST_WILLQUEUE, DELIVERED, Job
from disqued.core.jobs.jobid import JOB_ID_BYTES, is_job_id
from disqued.core.jobs.littleendian import read_u16, read_u32

_FIXED: Final = Struct("<I40sBBHIQIIHHI")
"""All fields up to and including the length of the queue name."""
_LENGTH: Final = Struct("<I")
_LENGTH_BYTES: Final = 4
_FIXED_BYTES: Final = 76
LEAST_BYTES: Final = _FIXED_BYTES + 2 * _LENGTH_BYTES
"""The size of a job with an empty queue name, an empty body and no holders."""
MAX_HOLDERS: Final = 4096
"""The highest number of holders that is accepted; clusters have fewer nodes."""
ID_AT: Final = 4
STATE_AT: Final = 44
_FLAGS_AT: Final = 45
_REPL_AT: Final = 46
EXPIRE_AT: Final = 48
CTIME_AT: Final = 52
DELAY_AT: Final = 60
_RETRY_AT: Final = 64
_NACKS_AT: Final = 68
_DELIVERIES_AT: Final = 70
BODY_AT: Final = _FIXED_BYTES + _LENGTH_BYTES
"""The offset of the body if the queue name is empty. Reads at fixed offsets cost less than `Struct.unpack`."""
_SENT_FLAGS: Final = BCAST_QUEUED | BCAST_WILLQUEUE
"""Flags that are sent; the others are local to this node."""
STORED_FLAGS: Final = BCAST_QUEUED | BCAST_WILLQUEUE | DELIVERED
"""Flags that are written to disk; the others have no meaning after a restart."""
_MAX_CTIME: Final = (1 << 63) - 1
_MAX_EXPIRE: Final = (1 << 32) - 1


class CorruptJob(Exception):
    """The bytes are not a valid serialised job; the text says why."""


@mypyc_attr(acyclic=True)
class Unpacked:
    """A deserialised job. `job.expire_at_s` is the value as sent or stored; `holders` are the concatenated IDs."""

    def __init__(self, job: Job, holders: bytes, state: i64, end: i64) -> None:
        self.job = job
        self.holders = holders
        self.state: i64 = state
        self.end: i64 = end
        """The offset after the job, where the next job can begin."""


def expiry_on_bus(job: Job, now_ms: i64) -> i64:
    """The expiry as it is sent: relative, because the clock of the other node may differ."""
    left_s: i64 = job.expire_at_s - now_ms // 1000
    return max(left_s, 0) + 1


CTIMES_PER_S: Final = 1_000_000_000
"""Units of `ctime` per second."""


def expiry_on_disk(job: Job, ahead_s: i64) -> i64:
    """The expiry as it is stored, in unix seconds. `ahead_s`: how far the wall clock is ahead of the node's time."""
    return job.expire_at_s + ahead_s


def ctime_on_disk(job: Job, ahead_s: i64) -> i64:
    """The creation time as it is stored, by the wall clock like the expiry."""
    return job.ctime + ahead_s * CTIMES_PER_S


def clamped(expiry: i64) -> i64:
    """The expiry in the range of its field."""
    return min(max(expiry, 0), _MAX_EXPIRE)


def pack(job: Job, state: i64, flags: i64, expire: i64, holders: bytes, ahead_s: i64 = 0) -> bytes:
    """Serialise a job without its attributes; `holders` is the number of holders, then their IDs (`Holders.pack`).

    `ahead_s` is added to the creation time.
    """
    queue = job.queue
    body = job.body
    fixed = _FIXED.pack(
        _FIXED_BYTES + len(queue) + len(body) + len(holders),
        job.id,
        state,
        flags,
        job.repl,
        clamped(expire),
        ctime_on_disk(job, ahead_s),
        job.delay_s,
        job.retry_s,
        job.nacks,
        job.additional_deliveries,
        len(queue),
    )
    return fixed + queue + _LENGTH.pack(len(body)) + body + holders


def pack_plain(job: Job, now_ms: i64, holders: bytes) -> bytes:
    """Serialise a job for a node that does not know attributes."""
    return pack(job, i64(job.state), i64(job.flags) & _SENT_FLAGS, expiry_on_bus(job, now_ms), holders)


def pack_for_bus(job: Job, now_ms: i64, holders: bytes) -> bytes:
    """Serialise a job for another node, with its attributes."""
    packed = pack_plain(job, now_ms, holders)
    return packed if job.extra is None else packed + job.extra.packed


def pack_for_disk(job: Job, state: i64, holders: bytes, ahead_s: i64 = 0) -> bytes:
    """Serialise a job for the append-only file, with the given state and its times by the wall clock."""
    packed = pack(job, state, i64(job.flags) & STORED_FLAGS, expiry_on_disk(job, ahead_s), holders, ahead_s)
    return packed if job.extra is None else packed + job.extra.packed


def unpack(data: bytes, at: i64, end: i64) -> Unpacked:
    """Deserialise the job that begins at offset `at`, with its attributes; both end at or before `end`.

    Raises CorruptJob.
    """
    if end - at < LEAST_BYTES:
        raise CorruptJob(f"{end - at} bytes are too few for a job")
    size = read_u32(data, at)
    stop: i64 = at + _LENGTH_BYTES + size
    if stop > end or size < LEAST_BYTES - _LENGTH_BYTES:
        raise CorruptJob(f"the job claims {size} bytes, and {end - at - _LENGTH_BYTES} are left")
    queue_at: i64 = at + _FIXED_BYTES
    body_at: i64 = queue_at + read_u32(data, queue_at - _LENGTH_BYTES) + _LENGTH_BYTES
    if body_at + _LENGTH_BYTES > stop:
        raise CorruptJob("the queue name is longer than the job")
    body_end: i64 = body_at + read_u32(data, body_at - _LENGTH_BYTES)
    holders_at: i64 = body_end + _LENGTH_BYTES
    if holders_at > stop:
        raise CorruptJob("the body is longer than the job")
    holders: i64 = read_u32(data, body_end)
    if holders > MAX_HOLDERS or holders_at + holders * NODE_ID_BYTES != stop:
        raise CorruptJob(f"the job claims {holders} holders, which does not fit its length")
    job_id = data[at + ID_AT : at + ID_AT + JOB_ID_BYTES]
    if not is_job_id(job_id):
        raise CorruptJob("the job has no valid ID")
    created = read_u32(data, at + CTIME_AT + 4)
    if created > _MAX_CTIME >> 32:
        raise CorruptJob("the creation time is out of range")
    job = Job(
        job_id,
        data[queue_at : body_at - _LENGTH_BYTES],
        data[body_at:body_end],
        created << 32 | read_u32(data, at + CTIME_AT),
        read_u32(data, at + EXPIRE_AT),
        read_u32(data, at + DELAY_AT),
        read_u32(data, at + _RETRY_AT),
        i32(read_u16(data, at + _REPL_AT)),
    )
    job.flags = u8(data[at + _FLAGS_AT])
    job.nacks = i32(read_u16(data, at + _NACKS_AT))
    job.additional_deliveries = i32(read_u16(data, at + _DELIVERIES_AT))
    state: i64 = data[at + STATE_AT]
    unpacked = Unpacked(job, data[holders_at:stop], state & 15, stop)
    if stop + _LENGTH_BYTES <= end and data[stop + 3] == MARK_END:
        _unpack_attributes(unpacked, data, end)
    return unpacked


def _unpack_attributes(unpacked: Unpacked, data: bytes, end: i64) -> None:
    """Deserialise the attributes that follow a job."""
    at = unpacked.end
    if block_bytes(data, at, end) == 0:
        raise CorruptJob("what follows the job are no attributes")
    try:
        extra = unpack_block(data, at, end)
    except CorruptAttributes as error:
        raise CorruptJob(str(error)) from error
    unpacked.job.extra = extra
    unpacked.end = at + len(extra.packed)
