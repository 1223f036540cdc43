"""Helpers for clients that add jobs to a simulated cluster, and for the jobs of its nodes."""

from __future__ import annotations

from disqued.testing.cluster import Cluster, Member
from disqued.testing.local import LocalClient

TIMEOUT = "NOREPL Timeout reached before replicating to the requested number of nodes"
REMOVED = "NOREPL job removed (expired?) before the requested replication level was achieved"
FEW = "NOREPL Not enough reachable nodes for the requested replication level"
A_TIMER_MS = 20
"""How late a timer of the node may be."""


def adding(cluster: Cluster, *options: str | int, timeout_ms: int = 0, queue: str = "mail", by: int = 1) -> LocalClient:
    """Send an ADDJOB to a member from a new client."""
    client = cluster.members[by - 1].client()
    client.send("ADDJOB", queue, "body", timeout_ms, *options)
    return client


def id_of(cluster: Cluster, client: LocalClient) -> bytes:
    """The ID that the client gets. Raises AssertionError if it gets none soon."""
    cluster.until(lambda: not client.silent, within_s=1)
    job_id = client.next_reply()
    assert isinstance(job_id, bytes), job_id
    return job_id


def waiting_job(member: Member) -> bytes:
    """The only job that a member has."""
    (job,) = member.node.state.lifecycle.table.jobs()
    return job.id


def error_of(client: LocalClient) -> str:
    return str(client.next_reply())


def jobs(cluster: Cluster) -> list[int]:
    """The number of jobs of each member."""
    return [int(member.node.state.lifecycle.table.count) for member in cluster.members]


def holders(member: Member, job_id: bytes) -> set[bytes]:
    """The holders of a job that a member knows."""
    job = member.node.state.lifecycle.table.get(job_id)
    assert job is not None
    return set(job.delivered or ())
