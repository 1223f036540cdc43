"""PAUSE with BCAST: one command pauses a queue on all nodes."""

from __future__ import annotations

import pytest

from disqued.bus import kinds
from disqued.testing.cluster import Cluster
from support.stories import tell


def pauses(cluster: Cluster) -> list[object]:
    return [member.admin.call("PAUSE", "mail", "state") for member in cluster.members]


@pytest.mark.parametrize("option", ["in", "out", "all"])
def test_bcast_pauses_and_resumes_all_nodes(cluster: Cluster, option: str) -> None:
    second = cluster.members[1]
    assert second.admin.call("PAUSE", "mail", option, "bcast") == option.encode()
    cluster.run(milliseconds=5)
    assert pauses(cluster) == [option.encode()] * 3
    assert second.admin.call("PAUSE", "mail", "none", "bcast") == b"none"
    cluster.run(milliseconds=5)
    assert pauses(cluster) == [b"none"] * 3


def test_pause_without_bcast_affects_only_its_node(cluster: Cluster) -> None:
    cluster.members[0].admin.call("PAUSE", "mail", "in")
    cluster.run(milliseconds=5)
    assert pauses(cluster) == [b"in", b"none", b"none"]
    assert cluster.sent("PAUSE") == []


def test_bcast_alone_sends_the_state_of_its_node(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    first.admin.call("PAUSE", "mail", "in")
    second.admin.call("PAUSE", "mail", "out")
    assert first.admin.call("PAUSE", "mail", "bcast") == b"in"
    cluster.run(milliseconds=5)
    assert pauses(cluster) == [b"in"] * 3


def test_client_of_another_node_is_served_when_the_pause_ends(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    second.admin.call("PAUSE", "mail", "out")
    job = second.admin.add("mail", "body", "REPLICATE", 1)
    client = second.client()
    client.send("GETJOB", "FROM", "mail")
    cluster.run(milliseconds=50)
    assert client.silent
    first.admin.call("PAUSE", "mail", "none", "bcast")
    cluster.run(milliseconds=5)
    assert client.next_reply() == [[b"mail", job, b"body"]]


def test_bcast_of_none_creates_no_queue(cluster: Cluster) -> None:
    cluster.members[0].admin.call("PAUSE", "mail", "none", "bcast")
    cluster.run(milliseconds=5)
    assert [member.admin.stat("mail") for member in cluster.members] == [{}, {}, {}]


def test_unknown_bits_are_ignored(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    tell(first, second.node.state.bus.about_queue(kinds.PAUSE, b"mail", 0xFFFFFFFD))
    assert first.admin.call("PAUSE", "mail", "state") == b"in"


def test_job_is_not_requeued_on_any_node_while_the_input_is_paused(cluster: Cluster) -> None:
    first, second, third = cluster.members
    job = first.admin.add("mail", "body", "REPLICATE", 3, "RETRY", 2, "ASYNC")
    cluster.run(milliseconds=10)
    assert first.admin.take("mail") == [job]
    first.admin.call("PAUSE", "mail", "in", "bcast")
    cluster.run(seconds=10)
    assert [member.admin.call("QLEN", "mail") for member in (first, second, third)] == [0, 0, 0]
    first.admin.call("PAUSE", "mail", "none", "bcast")
    cluster.run(seconds=3)
    assert sorted(str(member.admin.call("QLEN", "mail")) for member in cluster.members) == ["0", "0", "1"]
