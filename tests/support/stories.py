"""Helpers for tests of a simulated cluster: jobs with copies on chosen nodes, and frames of other nodes."""

from __future__ import annotations

from disqued.bus import kinds
from disqued.bus.frame import LISTED_BYTES, Frame
from disqued.bus.writer import FrameWriter
from disqued.core.cluster.peer import Link
from disqued.core.jobs.job import Job
from disqued.node import ROOMS
from disqued.testing.cluster import PORT, Cluster, Member

SENDER = slice(16, 56)
"""Where the ID of the sender is in a frame."""
JOB_MESSAGES = {message.number: message.name for message in ROOMS.messages if message.payload == kinds.OF_JOB_ID}


def added(cluster: Cluster, *options: str | int, by: int = 1, queue: str = "mail") -> bytes:
    """Add a job at a member and wait for its copies; returns the ID."""
    client = cluster.members[by - 1].client()
    client.send("ADDJOB", queue, "body", 0, *options)
    cluster.until(lambda: not client.silent, within_s=1)
    job_id = client.next_reply()
    assert isinstance(job_id, bytes), job_id
    cluster.run(milliseconds=5)
    cluster.forget_sent()
    return job_id


def job_at(member: Member, job_id: bytes) -> Job:
    """The job in the memory of a member."""
    job = member.node.state.lifecycle.table.get(job_id)
    assert job is not None
    return job


def without_job(cluster: Cluster, job_id: bytes) -> Member:
    """The first member that does not know the job."""
    return next(member for member in cluster.members if member not in cluster.copies(job_id))


def job_messages(cluster: Cluster, *, to: Member | None = None, by: Member | None = None) -> list[str]:
    """The messages about jobs that were sent, oldest first."""
    return [
        JOB_MESSAGES[int(sent.frame.kind)] for sent in cluster.sent(to=to, by=by) if sent.frame.kind in JOB_MESSAGES
    ]


def listed(frame: Frame) -> list[bytes]:
    """The IDs in a list of jobs, for example of a SETACKS."""
    return [frame.listed(at) for at in range(frame.jobs_at, frame.end, LISTED_BYTES)]


def tell(receiver: Member, frame: bytes) -> None:
    """Pass a frame to a member on a connection that belongs to its sender."""
    link = Link(None, receiver.now_ms)
    link.bind(frame[SENDER])
    receiver.node.link_bytes(link, frame, receiver.now_ms)
    receiver.flush()


def as_original(member: Member) -> FrameWriter:
    """Make a member announce only the protocol of the original; returns a writer of its frames."""
    member.node.state.bus = FrameWriter(member.id, PORT)
    return member.node.state.bus


def drop_job_messages(cluster: Cluster, member: Member) -> None:
    """Lose all messages about jobs to a member, so that the test decides its replies."""
    cluster.network.filters.append(lambda sent: sent.receiver is member and sent.frame.kind in JOB_MESSAGES)
