"""Helpers for a node that leaves a simulated cluster: adding jobs of every kind, its status, and later deliveries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from disqued.testing.cluster import Cluster, Member
from disqued.testing.local import Reply

QUEUES = ("mail", "copied", "once", "late", "late-once")


def status(member: Member) -> dict[str, Reply]:
    """CLUSTER LEAVING STATUS by name."""
    flat = member.admin.call("CLUSTER", "LEAVING", "STATUS")
    assert isinstance(flat, list)
    return {str(name, "ascii"): value for name, value in zip(flat[::2], flat[1::2], strict=True)}  # type: ignore[arg-type]


def leave(member: Member) -> None:
    assert member.admin.call("CLUSTER", "LEAVING", "yes") == b"OK"


def stay(member: Member) -> None:
    assert member.admin.call("CLUSTER", "LEAVING", "no") == b"OK"


def is_done(member: Member) -> bool:
    return status(member)["done"] == b"yes"


def until_done(cluster: Cluster, *members: Member, within_s: float = 30) -> None:
    """Run until no job is left on these members and their last messages have arrived."""
    cluster.until(lambda: all(is_done(member) for member in members), within_s=within_s)
    cluster.run(seconds=1)


def jobs_at(member: Member) -> int:
    """The number of jobs that a member has."""
    return int(member.node.state.lifecycle.table.count)


def add(member: Member, count: int, queue: str, *options: str | int) -> list[bytes]:
    """Add jobs that get their reply at once; returns their IDs."""
    return [member.admin.add(queue, b"body", *options) for _ in range(count)]


def add_copied(cluster: Cluster, member: Member, count: int, *options: str | int) -> list[bytes]:
    """Add jobs that need copies, each by its own client, all at once; returns their IDs."""
    clients = [member.client() for _ in range(count)]
    for client in clients:
        client.send("ADDJOB", "copied", "body", 0, *options)
    cluster.until(lambda: not any(client.silent for client in clients))
    found = [client.next_reply() for client in clients]
    return [job_id for job_id in found if isinstance(job_id, bytes)]


def drain(members: Iterable[Member], *queues: str) -> Counter[bytes]:
    """Take and acknowledge all jobs that are queued on the members; counts the deliveries of each job."""
    delivered: Counter[bytes] = Counter()
    for member in members:
        while taken := member.admin.take(*(queues or QUEUES), count=100):
            delivered.update(taken)
            member.admin.call("ACKJOB", *taken)
    return delivered


def work(cluster: Cluster, members: Iterable[Member], seconds: int) -> Counter[bytes]:
    """Take and acknowledge jobs on some members for a while; counts the deliveries of each job."""
    members = list(members)
    delivered: Counter[bytes] = Counter()
    for _ in range(seconds * 5):
        delivered.update(drain(members))
        cluster.run(milliseconds=200)
    return delivered


def reason(member: Member) -> str:
    """The reason why jobs stay on a leaving node."""
    waits_for = status(member)["waits-for"]
    assert isinstance(waits_for, bytes)
    return waits_for.decode()
