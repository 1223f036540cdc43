"""REPLJOB frames, built fast: the parts that consecutive jobs share are built once.

Consecutive jobs mostly have the same queue, options, holders and expiry second, so their frames differ only in ID,
creation time and body. A test compares the frames with those of `FrameWriter.jobs` and `jobs.codec`.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.bus.frame import COUNTED_BYTES
from disqued.bus.writer import FrameWriter
from disqued.core.cluster.holders import Holders
from disqued.core.jobs.codec import BODY_AT, CTIME_AT, DELAY_AT, ID_AT, STATE_AT, pack_for_bus
from disqued.core.jobs.job import NOBODY, Job, NodeIds
from disqued.core.memory.accounting import BIG_BYTES

_CTIME: Final = Struct("<Q")


class JobFrames:
    """Writes the REPLJOB frames of one node."""

    def __init__(self) -> None:
        self._bus: FrameWriter | None = None
        self._queue = b""
        self._body_bytes: i64 = -1
        self._expire_at_s: i64 = 0
        self._now_s: i64 = 0
        self._delay_s: i64 = 0
        self._retry_s: i64 = 0
        self._repl: i64 = 0
        self._message_flags: i64 = 0
        self._holders: NodeIds = NOBODY
        """The values for which the parts below were built."""
        self._before_id = b""
        self._behind_id = b""
        self._behind_ctime = b""
        self._behind_body = b""

    def repljob(self, bus: FrameWriter, job: Job, now_ms: i64, holders: Holders, message_flags: i64) -> bytes:
        """A REPLJOB for a new job, whose holders are `job.delivered`."""
        delivered = job.delivered
        assert delivered is not None
        if job.flags != 0 or job.nacks != 0 or job.additional_deliveries != 0:
            return _built(bus, job, now_ms, holders.pack(delivered), message_flags)
        body = job.body
        if len(body) > BIG_BYTES:  # cutting a frame into parts would need one more copy
            return _built(bus, job, now_ms, holders.pack(delivered), message_flags)
        now_s: i64 = now_ms // 1000
        if (
            bus is not self._bus
            or job.queue is not self._queue
            or len(body) != self._body_bytes
            or job.expire_at_s != self._expire_at_s
            or now_s != self._now_s
            or delivered is not self._holders
            or job.retry_s != self._retry_s
            or job.delay_s != self._delay_s
            or i64(job.repl) != self._repl
            or message_flags != self._message_flags
        ):
            self._bus = bus
            self._queue = job.queue
            self._body_bytes = len(body)
            self._expire_at_s = job.expire_at_s
            self._now_s = now_s
            self._holders = delivered
            self._retry_s = job.retry_s
            self._delay_s = job.delay_s
            self._repl = i64(job.repl)
            self._message_flags = message_flags
            self._cut(bus, job, now_ms, holders.pack(delivered))
        return b"".join(
            (
                self._before_id,
                job.id,
                self._behind_id,
                _CTIME.pack(job.ctime),
                self._behind_ctime,
                body,
                self._behind_body,
            )
        )

    def _cut(self, bus: FrameWriter, job: Job, now_ms: i64, packed_holders: bytes) -> None:
        """Build one frame the slow way, and cut it where frames differ."""
        frame = _built(bus, job, now_ms, packed_holders, self._message_flags)
        at: i64 = COUNTED_BYTES
        body_at: i64 = at + BODY_AT + len(job.queue)
        self._before_id = frame[: at + ID_AT]
        self._behind_id = frame[at + STATE_AT : at + CTIME_AT]
        self._behind_ctime = frame[at + DELAY_AT : body_at]
        self._behind_body = frame[body_at + len(job.body) :]


def _built(bus: FrameWriter, job: Job, now_ms: i64, packed_holders: bytes, message_flags: i64) -> bytes:
    """Build a frame without the shared parts."""
    return bus.jobs(kinds.REPLJOB, [pack_for_bus(job, now_ms, packed_holders)], message_flags)
