"""Priorities and metadata of the jobs of a simulation, and the checks that nodes keep them and deliver by them.

Both are chosen by the number of a job, not drawn, so all other random choices of a run stay as they are.
"""

from __future__ import annotations

from random import Random
from typing import Final
from zlib import crc32

from disqued.core.jobs.attributes import META
from disqued.core.jobs.job import QUEUED, Job
from disqued.core.lifecycle.times import JITTER_MS
from disqued.testing.cluster import Member
from disqued.testing.history import Attempt, History

_SHARE: Final = 0.4
"""The share of the runs whose jobs have priorities."""
_PRIORITIES: Final = (0, 0, 0, 0, 5, 5, -1, 1 << 30)
_META_AT: Final = 3
"""One of so many jobs has metadata."""
_TAKEN_MS: Final = 100
"""A job is taken at most this long before its reply leaves a healthy node, beside the waits for its disk."""
_PEEKED: Final = 1000


def are_used(seed: int) -> bool:
    """Whether the jobs of a run have priorities."""
    return Random(f"priorities {seed}").random() < _SHARE  # noqa: S311 - repeatable chance is the point


def choose(attempt: Attempt) -> None:
    """Give a new job its priority and its metadata."""
    chance = crc32(b"priority of %d" % attempt.number)
    attempt.priority = _PRIORITIES[chance % len(_PRIORITIES)]
    attempt.meta = b"meta of %d" % attempt.number if chance // len(_PRIORITIES) % _META_AT == 0 else b""


def options(attempt: Attempt) -> list[bytes | str | int]:
    """The words of ADDJOB for them."""
    words: list[bytes | str | int] = []
    if attempt.priority:
        words += ["PRIORITY", attempt.priority]
    if attempt.meta:
        words += ["META", attempt.meta]
    return words


def check_attributes(member: Member, history: History) -> None:
    """Check that a node has the priority and the metadata of each of its jobs, and orders its queues by them."""
    lifecycle = member.node.state.lifecycle
    for job in lifecycle.table.jobs():
        attempt = None if job.is_dummy else history.attempt_of(job.body)
        if attempt is not None and _given(job) != (attempt.priority, attempt.meta):
            history.violate(
                member.net.now_ms,
                f"node {member.number}: job {attempt.number} has priority and metadata {_given(job)} instead of "
                f"{(attempt.priority, attempt.meta)}",
            )
    for queue in lifecycle.queues.scan(0, 1 << 30)[1]:
        jobs = queue.order.peek(_PEEKED)
        if jobs != sorted(jobs, key=_rank) or len(jobs) != min(queue.length, _PEEKED):
            history.violate(member.net.now_ms, f"node {member.number}: queue {queue.name!r} is out of order")


def _given(job: Job) -> tuple[int, bytes]:
    if job.extra is None:
        return 0, b""
    return int(job.extra.priority), job.extra.get(META) or b""


def _rank(job: Job) -> tuple[int, int, bytes]:
    return (-_given(job)[0], int(job.ctime), job.id)


def check_delivery(member: Member, attempt: Attempt, history: History) -> None:
    """Check that no job with a higher priority waits in the queue of a job whose delivery leaves the node now.

    It must have been there when the job was taken. A queueing sets the retry time, so that tells when a job was queued.
    """
    now_ms = member.net.now_ms
    taken_ms = member.clock_ms(now_ms) - _TAKEN_MS - history.hold_ms
    for job in member.node.state.lifecycle.table.jobs():
        if job.state != QUEUED or job.retry_s == 0 or job.queue.decode() != attempt.queue:
            continue
        waiting = history.attempt_of(job.body)
        if waiting is None or waiting.priority <= attempt.priority:
            continue
        if job.requeue_at_ms - job.retry_s * 1000 + JITTER_MS // 2 < taken_ms:
            history.violate(
                now_ms,
                f"node {member.number} delivered job {attempt.number} with priority {attempt.priority} while job "
                f"{waiting.number} with priority {waiting.priority} waited",
            )
