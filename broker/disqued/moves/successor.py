"""The successor of a job: the job in the target queue that takes its place when it is moved.

Its ID is derived from the old job, the target queue and the number of moves, so every node that moves a job to the same
queue makes the same successor, and two of them are one job. The last digits of the old ID are kept: they say how long
the job lives and whether it is delivered at most once.
"""

from __future__ import annotations

from binascii import b2a_base64
from hashlib import blake2b
from typing import Final

from mypy_extensions import i64

from disqued.core.jobs.attributes import (
    AFTER,
    ATTEMPTS,
    DEAD,
    MAX_REASON_BYTES,
    MOVES,
    NAMED,
    ORIGIN_ID,
    ORIGIN_QUEUE,
    REASON,
    i32_value,
    i64_value,
    of,
)
from disqued.core.jobs.job import Job
from disqued.core.jobs.jobid import ttl_range_s

_PERSON: Final = b"disque-move"
_DIGEST_BYTES: Final = 18
_MOST_MOVES: Final = (1 << 31) - 2
_LEAST_LIFE_S: Final = 60
"""The TTL in the ID of a job has whole minutes, so a life that comes from there may be 0."""


def moves_of(job: Job) -> int:
    """How many moves led to a job."""
    return 0 if job.extra is None else min(max(job.extra.number(MOVES), 0), _MOST_MOVES)


def successor_id(old_id: bytes, target: bytes, moves: int) -> bytes:
    """The ID of the successor of a job in a queue; `moves` led to the old job."""
    words = old_id + len(target).to_bytes(8, "big") + target + (moves + 1).to_bytes(4, "big")
    digest = blake2b(words, digest_size=_DIGEST_BYTES, person=_PERSON).digest()
    return old_id[:11] + b2a_base64(digest, newline=False) + old_id[35:]


def life_s(job: Job) -> i64:
    """How long a job lives from its creation on, in seconds. The clocks of its nodes may differ; its ID bounds it."""
    life: i64 = job.expire_at_s - job.ctime // 1_000_000_000
    least_s, most_s = ttl_range_s(job.id)
    if job.is_dead_letter:  # the life of a dead letter is not that of the job before it
        life = i64(least_s)
    return max(min(max(life, i64(least_s)), i64(most_s)), _LEAST_LIFE_S)


def make(
    old: Job, target: bytes, ctime: i64, now_ms: i64, *, dead: bool, reason: bytes, lives_s: i64, keep_counters: bool
) -> Job:
    """The successor of a job; `dead`: as a dead letter. `lives_s` seconds are its life from now on.

    It has the body, the retry time, the number of copies and the attributes of the old job.
    """
    attempts = int(old.nacks) + int(old.additional_deliveries)
    values = {} if old.extra is None else old.extra.values()
    values.setdefault(ORIGIN_ID, old.id)
    values[MOVES] = i32_value(moves_of(old) + 1)
    values[ATTEMPTS] = i32_value(attempts)
    values[NAMED] = b""
    if reason:
        values[REASON] = reason[:MAX_REASON_BYTES]
    if dead:
        values.pop(AFTER, None)  # a job that has died no longer waits
        values[DEAD] = i64_value(int(now_ms))
        values[ORIGIN_QUEUE] = old.queue
    else:
        values.pop(DEAD, None)
        values.setdefault(ORIGIN_QUEUE, old.queue)
    job = Job(
        successor_id(old.id, target, moves_of(old)),
        target,
        old.body,
        ctime,
        now_ms // 1000 + lives_s,
        0,
        old.retry_s,
        old.repl,
    )
    job.extra = of(values)
    if keep_counters:
        job.nacks = old.nacks
        job.additional_deliveries = old.additional_deliveries
    return job
