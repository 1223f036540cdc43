"""Helpers for jobs that wait for others, on one node and in clusters."""

from __future__ import annotations

from disqued.core.jobs.job import Job
from disqued.testing.cluster import Cluster, Member
from disqued.testing.local import LocalClient, Reply

ABSENT = b"D-00000000-0123456789abcdefABCDEF+/-05a1"


def reply_of(cluster: Cluster, client: LocalClient, *, within_s: float = 2) -> Reply:
    cluster.until(lambda: not client.silent, within_s=within_s)
    return client.next_reply()


def add(cluster: Cluster, member: Member, queue: str, *options: str | bytes | int, timeout_ms: int = 2000) -> bytes:
    """Add a job at a member of a cluster; AssertionError if it is refused."""
    client = member.client()
    client.send("ADDJOB", queue, "body", timeout_ms, *options)
    job_id = reply_of(cluster, client)
    assert isinstance(job_id, bytes), job_id
    return job_id


def job_at(member: Member, job_id: bytes) -> Job:
    job = member.node.state.lifecycle.table.get(job_id)
    assert job is not None
    return job


def held_at(cluster: Cluster, job_id: bytes) -> list[Member]:
    """The running members that hold a job back."""
    return [
        member
        for member in cluster.members
        if member.running
        and (job := member.node.state.lifecycle.table.get(job_id)) is not None
        and job.is_held
        and job.state == 1
    ]


def queued_at(cluster: Cluster, job_id: bytes) -> list[Member]:
    return cluster.copies(job_id, "queued")


def length(cluster: Cluster, queue: str) -> int:
    """How many jobs of a queue are queued on all running members."""
    lengths = [member.admin.call("QLEN", queue) for member in cluster.members if member.running]
    return sum(number for number in lengths if isinstance(number, int))


def call(cluster: Cluster, member: Member, *words: str | bytes | int) -> Reply:
    """The reply to a command, which may take a while."""
    client = member.client()
    client.send(*words)
    return reply_of(cluster, client, within_s=10)
