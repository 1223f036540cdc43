"""Serialises jobs fast: the bytes that consecutive jobs share are built once.

Consecutive jobs mostly have the same queue, options and holders, so their bytes differ only in ID, expiry, creation
time and body. Build the bytes of the first such job with `jobs.codec`, and call `remember`. When the next job matches,
build its bytes with the codec as well and `cut` them; from then on `fill` makes the bytes of each job that matches.
Because the first job is not cut, jobs that share nothing cost little more than without a template.

The bytes may have a prefix of the caller's, for example the header of a message, which all of these jobs share too. A
job with attributes is serialised by the codec alone.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final

from mypy_extensions import i64

from disqued.core.jobs.codec import (
    BODY_AT,
    DELAY_AT,
    EXPIRE_AT,
    ID_AT,
    STATE_AT,
    STORED_FLAGS,
    clamped,
    expiry_on_bus,
    pack_for_bus,
)
from disqued.core.jobs.job import NOBODY, Job, NodeIds

_NOTHING: Final = Struct("").pack


class JobTemplate:
    """The shared bytes of consecutive jobs. A user compares what else its bytes depend on, and calls `remember`."""

    def __init__(self) -> None:
        self.is_cut: bool = False
        """Whether `fill` can be used for jobs that match."""
        self._queue = b""
        self._body_bytes: i64 = -1
        self._state: i64 = 0
        self._flags: i64 = 0
        self._repl: i64 = 0
        self._delay_s: i64 = 0
        self._retry_s: i64 = 0
        self._nacks: i64 = 0
        self._additional_deliveries: i64 = 0
        self._holders: NodeIds | None = NOBODY
        """The values of the last job that was remembered."""
        self._before_id = b""
        self._after_id = b""
        self._after_ctime = b""
        self._after_body = b""
        self._pack: Callable[..., bytes] = _NOTHING
        """Joins these parts with those that differ: one call costs half of `bytes.join`."""

    def matches(self, job: Job, state: i64) -> bool:
        """Whether a job in this state differs from the last one only in ID, expiry, creation time and body."""
        return (
            job.queue is self._queue
            and len(job.body) == self._body_bytes
            and state == self._state
            and i64(job.flags) & STORED_FLAGS == self._flags
            and job.delivered is self._holders
            and job.retry_s == self._retry_s
            and job.delay_s == self._delay_s
            and i64(job.repl) == self._repl
            and i64(job.nacks) == self._nacks
            and i64(job.additional_deliveries) == self._additional_deliveries
        )

    def remember(self, job: Job, state: i64) -> None:
        """Remember the values of this job for `matches`."""
        self.is_cut = False
        self._queue = job.queue
        self._body_bytes = len(job.body)
        self._state = state
        self._flags = i64(job.flags) & STORED_FLAGS
        self._repl = i64(job.repl)
        self._delay_s = job.delay_s
        self._retry_s = job.retry_s
        self._nacks = i64(job.nacks)
        self._additional_deliveries = i64(job.additional_deliveries)
        self._holders = job.delivered

    def cut(self, job: Job, data: bytes, at: i64) -> None:
        """Take the shared bytes from `data`, in which this job begins at offset `at` and ends at the end."""
        body_at: i64 = at + BODY_AT + len(job.queue)
        self.is_cut = True
        self._before_id = data[: at + ID_AT]
        self._after_id = data[at + STATE_AT : at + EXPIRE_AT]
        self._after_ctime = data[at + DELAY_AT : body_at]
        self._after_body = data[body_at + len(job.body) :]
        self._pack = Struct(
            f"<{len(self._before_id)}s{len(job.id)}s{len(self._after_id)}sIQ"
            f"{len(self._after_ctime)}s{len(job.body)}s{len(self._after_body)}s"
        ).pack

    def fill(self, job: Job, expiry: i64, ctime: i64) -> bytes:
        """The bytes of a job that matches, prefix included, once the template is cut.

        `expiry` is that of the codec (`expiry_on_bus`, `expiry_on_disk`), and so is `ctime` on disk (`ctime_on_disk`).
        """
        return self._pack(
            self._before_id,
            job.id,
            self._after_id,
            clamped(expiry),
            ctime,
            self._after_ctime,
            job.body,
            self._after_body,
        )


class BusJobs:
    """Serialises consecutive jobs for other nodes, as `pack_for_bus` does."""

    def __init__(self) -> None:
        self._template = JobTemplate()
        self._holders = b""

    def pack(self, job: Job, now_ms: i64, holders: bytes) -> bytes:
        """The bytes of a job; `holders` are those that the receiver learns of (`Holders.pack`)."""
        if job.extra is not None:
            return pack_for_bus(job, now_ms, holders)
        template = self._template
        state = i64(job.state)
        matches = holders is self._holders and template.matches(job, state)
        if matches and template.is_cut:
            return template.fill(job, expiry_on_bus(job, now_ms), job.ctime)
        packed = pack_for_bus(job, now_ms, holders)
        if matches:
            template.cut(job, packed, 0)
        else:
            self._holders = holders
            template.remember(job, state)
        return packed
