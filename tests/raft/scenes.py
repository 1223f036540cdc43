"""What the scenarios of Raft share."""

from __future__ import annotations

from disqued.raft.message import NAMES, Message
from disqued.testing.raftcluster import GROUP, RaftCluster


def terms(cluster: RaftCluster, name: str) -> list[int]:
    """The terms of the entries of a member, from the first one."""
    group = cluster[name].group
    return [int(group.term_at(index)) for index in range(1, group.last + 1)]


def commands(cluster: RaftCluster, name: str) -> list[bytes]:
    """The commands that a member has applied."""
    return cluster[name].commands


def kinds(messages: list[Message]) -> list[str]:
    """The messages in short: kind and the way they went."""
    return [
        f"{NAMES[message.kind]} {message.sender[:1].decode()}->{message.to[:1].decode()}"
        + (" refused" if message.flag and "REPLY" in NAMES[message.kind] else "")
        for message in messages
    ]


def forget_leader(cluster: RaftCluster) -> None:
    """Let all members believe that their leader leads no more."""
    for member in cluster.members.values():
        member.liveness.deny(member.group.leader, GROUP, member.group.term)


def win(cluster: RaftCluster, name: str) -> None:
    """Let a replica campaign and become leader, whether it can commit something or not."""
    member = cluster[name]
    for _ in range(2):  # The first time, it may only learn the term of the others.
        forget_leader(cluster)
        member.group.campaign(cluster.now_ms)
        cluster.work(member)
        if cluster.run_until(lambda: member.is_leader, 30):
            return
    raise AssertionError(f"{name} does not win")


def record(cluster: RaftCluster) -> list[Message]:
    """Begin to record the messages that are sent."""
    cluster.sent = []
    cluster.recording = True
    return cluster.sent
