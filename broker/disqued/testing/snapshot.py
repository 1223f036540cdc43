"""The jobs and pauses of a node, for comparison after a restart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from disqued.core.jobs.job import ACTIVE, DELAYED, DELIVERED, QUEUED
from disqued.core.queues.queue import PAUSE_NAMES
from disqued.testing.cluster import Member

NEARLY_OVER_MS: Final = 2000
"""Jobs that expire within this time may be there or not."""
ASKING_MS: Final = 1600
"""How long after a restart a node may ask other holders whether they have queued a job meanwhile."""


@dataclass(frozen=True)
class Kept:
    """A job that must survive a restart."""

    queued: bool
    due_ms: int
    """When it will be queued; 0 if it is queued."""
    shared: bool
    """Whether other nodes may have it too."""
    delayed_until_ms: int
    """The end of its first delay; 0 if it does not wait for that."""
    nacks: int
    additional_deliveries: int
    body: bytes
    expires_ms: int


@dataclass(frozen=True)
class Snapshot:
    """All jobs that must be there after a restart, and the pauses of queues."""

    jobs: dict[bytes, Kept]
    pauses: dict[bytes, bytes]


def snapshot(member: Member) -> Snapshot:
    """The jobs and pauses of a node now."""
    lifecycle = member.node.state.lifecycle
    jobs: dict[bytes, Kept] = {}
    for job in lifecycle.table.jobs():
        handed_out = job.retry_s == 0 and job.flags & DELIVERED
        if job.state in {ACTIVE, QUEUED} and not handed_out:
            until_ms = job.created_ms + job.delay_s * 1000
            delayed = job.state == ACTIVE and job.flags & DELAYED and until_ms > member.now_ms
            jobs[job.id] = Kept(
                queued=job.state == QUEUED,
                due_ms=int(job.requeue_at_ms) if job.state == ACTIVE else 0,
                shared=job.delivered is not None and len(job.delivered) > 1,
                delayed_until_ms=int(until_ms) if delayed else 0,
                nacks=int(job.nacks),
                additional_deliveries=int(job.additional_deliveries),
                body=job.body,
                expires_ms=int(job.expire_at_s) * 1000,
            )
    _, queues = lifecycle.queues.scan(0, 1 << 30)
    return Snapshot(jobs, {queue.name: PAUSE_NAMES[queue.local_pause] for queue in queues if queue.local_pause})


def differences(before: Snapshot, after: Snapshot, now_ms: int) -> list[str]:
    """What differs after a controlled restart."""
    found: list[str] = []
    if before.pauses != after.pauses:
        found.append(f"pauses are {after.pauses}, were {before.pauses}")
    for job_id, was in before.jobs.items():
        if was.expires_ms <= now_ms + NEARLY_OVER_MS:
            continue
        job = after.jobs.get(job_id)
        if job is None:
            found.append(f"{job_id!r} is gone, was {was}")
            continue
        due = 0 < was.delayed_until_ms <= now_ms
        asks = was.queued and job.shared and now_ms < job.due_ms <= now_ms + ASKING_MS
        same = (job.queued == was.queued or asks) and (due or job.delayed_until_ms == was.delayed_until_ms)
        counters = (was.nacks, was.additional_deliveries, was.body)
        if not same or (job.nacks, job.additional_deliveries, job.body) != counters:
            found.append(f"{job_id!r} is {job}, was {was}")
    found += [f"{job_id!r} was not there before" for job_id in after.jobs if job_id not in before.jobs]
    return found
