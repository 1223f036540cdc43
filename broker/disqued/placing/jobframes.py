"""REPLJOB frames, built fast from a template (`core.jobs.template`): those of consecutive jobs differ little."""

from __future__ import annotations

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.bus.frame import COUNTED_BYTES
from disqued.bus.writer import FrameWriter
from disqued.core.cluster.holders import Holders
from disqued.core.jobs.codec import expiry_on_bus, pack_for_bus
from disqued.core.jobs.job import Job
from disqued.core.jobs.template import JobTemplate


class JobFrames:
    """Writes the REPLJOB frames of one node."""

    def __init__(self) -> None:
        self._template = JobTemplate()
        self._bus: FrameWriter | None = None
        self._message_flags: i64 = 0

    def repljob(self, bus: FrameWriter, job: Job, now_ms: i64, holders: Holders, message_flags: i64) -> bytes:
        """A REPLJOB for a new job without attributes, whose holders are `job.delivered`."""
        template = self._template
        state = i64(job.state)
        matches = bus is self._bus and message_flags == self._message_flags and template.matches(job, state)
        if matches and template.is_cut:
            return template.fill(job, expiry_on_bus(job, now_ms), job.ctime)
        delivered = job.delivered
        assert delivered is not None
        frame = bus.jobs(kinds.REPLJOB, [pack_for_bus(job, now_ms, holders.pack(delivered))], message_flags)
        if matches:
            template.cut(job, frame, COUNTED_BYTES)
        else:
            self._bus = bus
            self._message_flags = message_flags
            template.remember(job, state)
        return frame
