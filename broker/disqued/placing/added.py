"""The reply to an ADDJOB: the ID of the job, and with WITHCOPIES how many nodes have it."""

from __future__ import annotations

from mypy_extensions import i64


def added(job_id: bytes, copies: i64, *, with_copies: bool) -> bytes:
    """The encoded reply for a job that this many nodes have confirmed so far."""
    return b"*2\r\n+%b\r\n:%d\r\n" % (job_id, copies) if with_copies else b"+" + job_id + b"\r\n"


def added_before(job_id: bytes, *, with_copies: bool) -> bytes:
    """The encoded reply for a job that an earlier ADDJOB added: how many nodes have it is not known any more."""
    return b"*2\r\n+%b\r\n$-1\r\n" % job_id if with_copies else b"+" + job_id + b"\r\n"
