"""What the tests of records, results and waiting share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.bus import kinds
from disqued.bus.extension import NOBODY, extension
from membership.stories import ScriptedNode

if TYPE_CHECKING:
    from disqued.testing.cluster import Cluster, Member
    from disqued.testing.local import LocalNode, Reply


def add(cluster: Cluster, member: Member, *options: bytes | str | int, copies: int = 2, queue: str = "q") -> bytes:
    """The ID of a new job."""
    client = member.client()
    client.send("ADDJOB", queue, "body", 1000, "REPLICATE", copies, *options)
    cluster.until(lambda: not client.silent)
    job = client.next_reply()
    assert isinstance(job, bytes)
    return job


def elsewhere(cluster: Cluster, job: bytes) -> Member:
    """A node without the job."""
    holders = cluster.copies(job)
    (other, *_) = [member for member in cluster.members if member not in holders]
    return other


def result(cluster: Cluster, member: Member, job: bytes) -> Reply:
    """What RESULT replies."""
    client = member.client()
    client.send("RESULT", job)
    cluster.until(lambda: not client.silent, within_s=5)
    return client.next_reply()


def scripted(local: LocalNode, ip: bytes = b"10.0.0.2") -> ScriptedNode:
    """A member that announces the feature."""
    peer = ScriptedNode(local, ip, extension=extension(kinds.FEATURE_FATES, 17711, NOBODY, b"only-run"))
    peer.join()
    local.run(milliseconds=500)
    return peer
