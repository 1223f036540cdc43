"""Claims: a number with a delivery, greater than those of all deliveries of the job before it (a fencing token).

A claim is a positive integer of 63 bits: unix milliseconds, and in the last 16 bits the number of the node. It is
greater than every claim that its node knows for the job, whatever the clock says. The attribute CLAIM of a job is the
greatest claim that is known. When a node learns that the job was queued again elsewhere, it sets these last bits to 1:
no node has that number, so the claim before is stale although the next one is not known.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from mypy_extensions import i64

from disqued.core.jobs.attributes import CLAIM
from disqued.core.jobs.job import Job
from disqued.errors import ReplyError, StaleClaim
from disqued.resp.integers import parse_integer

NODE_BITS: Final = 16
NO_NODE: Final = (1 << NODE_BITS) - 1
"""The number that no node has."""
MOST: Final = (1 << 62) - 1
"""The greatest claim that is accepted, of the year 4199. Nobody can set a claim that no later one exceeds."""


def default_number(node_id: bytes) -> i64:
    """The number of a node in its claims, unless another node has the same one (`membership.tokenbits`)."""
    number: i64 = crc32(node_id) & NO_NODE
    return number if number != NO_NODE else 0


def claim_of(job: Job) -> i64:
    """The greatest claim that is known for a job; 0 if there is none."""
    extra = job.extra
    if extra is None or not extra.claimed:
        return 0
    return min(max(extra.number(CLAIM), 0), MOST)


def next_claim(known: i64, now_ms: i64, node_number: i64) -> i64:
    """The claim of a delivery at this time by a node, greater than the one that is known for the job."""
    at_ms: i64 = max(now_ms, (known >> NODE_BITS) + 1)
    return at_ms << NODE_BITS | node_number


def superseded(known: i64) -> i64:
    """What is known when a job with this claim was queued again, and its next claim is not known yet."""
    return known | NO_NODE


def refusal(job: Job, claim: i64) -> StaleClaim | None:
    """Why a worker must not change a job under this claim; None if it may. The only comparison of claims."""
    known = claim_of(job)
    if claim >= known:
        return None
    return StaleClaim(0 if known & NO_NODE == NO_NODE else int(known))


def parse_claim(word: bytes) -> i64:
    """A claim in a request. Raises ReplyError if it is no number that GETJOB can have returned."""
    claim = parse_integer(word)
    if claim is None or not 0 < claim <= MOST:
        raise ReplyError(f"ERR CLAIM must be a number that GETJOB WITHCLAIM returned, between 1 and {MOST}")
    return claim
