"""What stories about a simulated cluster need: jobs in a certain place, frames as another node would write them."""

from __future__ import annotations

from disqued.bus import kinds
from disqued.bus.writer import FrameWriter
from disqued.core.cluster.peer import Link
from disqued.core.jobs.job import Job
from disqued.node import ROOMS
from disqued.testing.cluster import PORT, Cluster, Member

LETTERS = {message.number: message.name for message in ROOMS.messages if message.payload == kinds.OF_JOB_ID}


def added(cluster: Cluster, *options: str | int, by: int = 1, queue: str = "mail") -> bytes:
    """The ID of a new job that a member takes and that has its copies."""
    client = cluster.members[by - 1].client()
    client.send("ADDJOB", queue, "body", 0, *options)
    cluster.until(lambda: not client.silent, within_s=1)
    job_id = client.next_reply()
    assert isinstance(job_id, bytes), job_id
    cluster.run(milliseconds=5)
    cluster.forget_sent()
    return job_id


def job_at(member: Member, job_id: bytes) -> Job:
    """The job as a member keeps it."""
    job = member.node.state.lifecycle.table.get(job_id)
    assert job is not None
    return job


def without_job(cluster: Cluster, job_id: bytes) -> Member:
    """The first member that does not know the job."""
    return next(member for member in cluster.members if member not in cluster.copies(job_id))


def talk(cluster: Cluster, *, to: Member | None = None, by: Member | None = None) -> list[str]:
    """The messages about jobs that were sent, in order."""
    return [LETTERS[int(sent.frame.kind)] for sent in cluster.sent(to=to, by=by) if sent.frame.kind in LETTERS]


def tell(receiver: Member, frame: bytes) -> None:
    """A frame arrives on a connection that somebody opened."""
    receiver.node.link_bytes(Link(None, receiver.now_ms), frame, receiver.now_ms)
    receiver.flush()


def disguise(member: Member) -> FrameWriter:
    """Have a member announce nothing beyond the original's protocol; frames as it writes them."""
    member.node.state.bus = FrameWriter(member.id, PORT)
    return member.node.state.bus


def deaf(cluster: Cluster, member: Member) -> None:
    """Let no message about a job reach a member: what it answers is up to the story."""
    cluster.network.filters.append(lambda sent: sent.receiver is member and sent.frame.kind in LETTERS)
