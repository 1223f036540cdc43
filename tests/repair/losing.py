"""Helpers for tests of lost copies: jobs with copies, nodes that come back without theirs, and what repair says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from disqued.testing.cluster import Cluster, Member
from disqued.testing.local import Reply
from metrics.pages import scrape
from support.fixtures import settled


def five() -> Cluster:
    """Five nodes that keep no files."""
    return settled(5)


def add(cluster: Cluster, by: Member, count: int, *options: str | int, queue: str = "mail") -> list[bytes]:
    """Add jobs, each by its own client, all at once; returns their IDs when all have their copies."""
    clients = [by.client() for _ in range(count)]
    for client in clients:
        client.send("ADDJOB", queue, "body", 0, *options)
    cluster.until(lambda: not any(client.silent for client in clients))
    found = [client.next_reply() for client in clients]
    return [job_id for job_id in found if isinstance(job_id, bytes)]


def status(member: Member) -> dict[str, Reply]:
    """CLUSTER REPAIR STATUS by name."""
    flat = member.admin.call("CLUSTER", "REPAIR", "STATUS")
    assert isinstance(flat, list)
    return {str(name, "ascii"): value for name, value in zip(flat[::2], flat[1::2], strict=True)}  # type: ignore[arg-type]


def short(cluster: Cluster) -> int:
    """The largest number of jobs with too few copies that a running member knows."""
    counts = [status(member)["jobs-under-replicated"] for member in cluster.members if member.running]
    return max(count for count in counts if isinstance(count, int))


def is_whole(cluster: Cluster) -> bool:
    """Whether all running members say that no copy is missing."""
    return cluster.is_whole() and all(status(member)["done"] == b"yes" for member in cluster.members if member.running)


def copies(cluster: Cluster, jobs: Iterable[bytes]) -> set[int]:
    """How many running members have a job, for all jobs."""
    tables = [member.node.state.lifecycle.table for member in cluster.members if member.running]
    return {sum(table.get(job_id) is not None for table in tables) for job_id in jobs}


def lists_of(member: Member, job_id: bytes) -> tuple[bytes, ...]:
    """The holders of a job, as a member knows them."""
    job = member.node.state.lifecycle.table.get(job_id)
    assert job is not None
    assert job.delivered is not None
    return job.delivered


def rebuilt(cluster: Cluster) -> dict[str, int]:
    """How many copies the running members made again, by reason."""
    found: Counter[str] = Counter()
    for member in cluster.members:
        if member.running:
            counts = scrape(member).by("reason", "disque_copies_rebuilt_total")
            found.update({reason: int(count) for reason, count in counts.items()})
    return {reason: count for reason, count in found.items() if count}
