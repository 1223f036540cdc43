"""Clients that wait on one node for what others add on another, and what passes between the nodes."""

from __future__ import annotations

from disqued.bus import kinds
from disqued.bus.writer import FrameWriter
from disqued.core.jobs.codec import pack
from disqued.core.jobs.job import Job
from disqued.testing.cluster import Cluster, Member
from disqued.testing.local import LocalClient

A_TIMER_MS = 20
"""How late a timer of the node may be."""


def added(member: Member, *options: str | int, queue: str = "mail") -> bytes:
    """The ID of a new job that only one node has."""
    return member.admin.add(queue, "body", "REPLICATE", 1, *options)


def waiting(member: Member, *queues: str, timeout_ms: int = 0) -> LocalClient:
    """A client that waits in GETJOB."""
    client = member.client()
    client.send("GETJOB", "TIMEOUT", timeout_ms, "FROM", *(queues or ("mail",)))
    return client


def received(client: LocalClient) -> list[bytes]:
    """The IDs of the jobs that a client was sent."""
    jobs: list[bytes] = []
    for reply in client.replies():
        assert isinstance(reply, list), reply
        for entry in reply:
            assert isinstance(entry, list), entry
            assert isinstance(entry[1], bytes), entry
            jobs.append(entry[1])
    return jobs


def asked(cluster: Cluster, *, by: Member, to: Member | None = None) -> list[tuple[int, int]]:
    """When a member asked for jobs, in milliseconds since its first NEEDJOBS, and for how many."""
    sent = cluster.sent("NEEDJOBS", by=by, to=to)
    return [(message.at_ms - sent[0].at_ms, int(message.frame.aux)) for message in sent]


def moves(cluster: Cluster) -> list[tuple[int, int, int]]:
    """The YOURJOBS sent: number of the sender, number of the receiver, how many jobs."""
    return [
        (_number(cluster, message.sender), _number(cluster, message.receiver), int(message.frame.jobs_count))
        for message in cluster.sent("YOURJOBS")
    ]


def _number(cluster: Cluster, member: object) -> int:
    return next(number for number, known in enumerate(cluster.members, start=1) if known is member)


def jobs_at(member: Member) -> int:
    """How many jobs a member has."""
    return int(member.node.state.lifecycle.table.count)


def length_at(member: Member, queue: str = "mail") -> int:
    """How many jobs wait there."""
    length = member.admin.call("QLEN", queue)
    assert isinstance(length, int)
    return length


def holders(member: Member, job_id: bytes) -> set[bytes] | None:
    """The holders of a job in the record of a member; None if it is the only one."""
    job = member.node.state.lifecycle.table.get(job_id)
    assert job is not None
    return None if job.delivered is None else set(job.delivered)


def yourjobs(writer: FrameWriter, *jobs: Job, holder: bytes) -> bytes:
    """The frame in which a node gives jobs away that it alone holds."""
    listed = (1).to_bytes(4, "little") + holder
    return writer.jobs(kinds.YOURJOBS, [pack(job, 1, int(job.flags), 3600, listed) for job in jobs])


def needjobs(writer: FrameWriter, queue: bytes, count: int) -> bytes:
    """The frame in which a node asks."""
    return writer.about_queue(kinds.NEEDJOBS, queue, count)
