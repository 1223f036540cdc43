"""Patterns in a cluster: a client gets jobs of matching queues of all nodes, whatever names its own node knows."""

from __future__ import annotations

import pytest

from disqued.bus import kinds
from disqued.bus.extension import NOBODY, extension
from disqued.bus.writer import FrameWriter
from disqued.core.queues.patterns import MOST_LOCAL
from disqued.patterns.payload import pack
from disqued.patterns.room import FEATURE_PATTERNS
from disqued.testing.cluster import PORT, Cluster, Member
from disqued.testing.local import LocalClient, LocalNode
from federation.moving import added, received
from membership.stories import ScriptedNode


def waiting(member: Member, *patterns: str) -> LocalClient:
    client = member.client()
    client.send("GETJOB", "FROMPATTERN", *patterns)
    return client


def test_a_job_that_is_added_elsewhere_reaches_the_client_at_once(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    client = waiting(first, "ma*")
    cluster.run(milliseconds=200)
    job_id = added(second)
    cluster.until(lambda: not client.silent, within_s=0.1)
    assert received(client) == [job_id]


def test_jobs_that_are_there_already_reach_the_client(cluster: Cluster) -> None:
    first, second, third = cluster.members
    jobs = {added(second, queue=f"mail:{number}") for number in range(5)} | {added(third, queue="mail:x")}
    added(second, queue="print")
    cluster.run(seconds=2)
    got: list[bytes] = []
    client = first.client()
    for _ in jobs:
        client.send("GETJOB", "TIMEOUT", 3000, "FROMPATTERN", "mail:*")
        cluster.until(lambda: not client.silent, within_s=4)
        got += received(client)
    assert set(got) == jobs
    assert second.admin.call("QLEN", "print") == 1


def test_all_jobs_of_a_long_queue_reach_a_client_that_comes_back(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    client = first.client()
    jobs = [added(second) for _ in range(50)]
    got: list[bytes] = []
    while len(got) < len(jobs):
        client.send("GETJOB", "TIMEOUT", 5000, "FROMPATTERN", "m*")
        cluster.until(lambda: not client.silent, within_s=6)
        more = received(client)
        assert more, f"only {len(got)} of {len(jobs)} jobs"
        got += more
    assert sorted(got) == sorted(jobs)


def test_a_job_that_is_added_after_the_client_was_away_reaches_it(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    client = first.client()
    for _ in range(3):
        job_id = added(second)
        client.send("GETJOB", "TIMEOUT", 5000, "FROMPATTERN", "m*")
        cluster.until(lambda: not client.silent, within_s=3)
        assert received(client) == [job_id]
        cluster.run(seconds=5)


def test_a_queue_with_clients_of_its_own_is_not_named(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    waiting(first, "m*")
    cluster.run(milliseconds=200)
    for _ in range(3):
        own = second.client()
        own.send("GETJOB", "FROM", "mail")
        cluster.run(milliseconds=10)
        job_id = added(second)
        assert received(own) == [job_id]
        cluster.run(milliseconds=50)
    assert cluster.sent("QUEUENAME") == []


def test_a_lost_name_is_sent_again_after_the_next_announcement(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    client = waiting(first, "m*")
    cluster.run(milliseconds=200)
    cluster.lose("QUEUENAME", by=second, count=1)
    job_id = added(second)
    cluster.run(seconds=9)
    assert client.silent
    cluster.until(lambda: not client.silent, within_s=3)
    assert received(client) == [job_id]


def test_a_node_that_restarts_learns_the_patterns(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    client = waiting(first, "m*")
    cluster.run(milliseconds=200)
    second.crash()
    second.restart()
    cluster.until(cluster.is_whole)
    job_id = added(second)
    cluster.until(lambda: not client.silent, within_s=2)
    assert received(client) == [job_id]


def test_patterns_are_withdrawn_when_no_client_waits(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    client = first.client()
    client.send("GETJOB", "TIMEOUT", 100, "FROMPATTERN", "m*")
    cluster.run(seconds=4)
    cluster.forget_sent()
    added(second)
    cluster.run(seconds=1)
    assert cluster.sent("QUEUENAME") == []
    cluster.run(seconds=120)
    assert [len(member.node.state.lifecycle.patterns.live) for member in cluster.members] == [0, 0, 0]


def test_patterns_of_a_node_that_died_are_forgotten(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    waiting(first, "m*")
    cluster.run(seconds=1)
    assert len(second.node.state.lifecycle.patterns.live) == 1
    first.crash()
    cluster.run(seconds=120)
    assert second.node.state.lifecycle.patterns.live == []


def test_clients_that_wait_for_long_cost_few_messages(cluster: Cluster) -> None:
    first = cluster.members[0]
    for _ in range(20):
        waiting(first, "m*", "p*")
    cluster.run(seconds=1)
    cluster.forget_sent()
    cluster.run(seconds=60)
    assert len(cluster.sent("PATTERNS")) == 12
    assert cluster.sent("NEEDJOBS") == []


def test_a_node_without_patterns_sends_nothing(cluster: Cluster) -> None:
    for number in range(20):
        added(cluster.members[number % 3], queue=f"q{number}")
    cluster.run(seconds=20)
    assert cluster.sent("PATTERNS") == []
    assert cluster.sent("QUEUENAME") == []


def test_nodes_of_the_original_get_no_patterns(cluster: Cluster) -> None:
    first, second, third = cluster.members
    second.node.state.bus = FrameWriter(second.id, PORT)
    cluster.run(seconds=3)
    client = waiting(first, "m*")
    cluster.run(seconds=1)
    assert cluster.sent("PATTERNS", to=second) == []
    assert len(cluster.sent("PATTERNS", to=third)) == 1
    job_id = added(third)
    cluster.until(lambda: not client.silent, within_s=1)
    assert received(client) == [job_id]


def test_a_user_gets_only_jobs_of_its_queues_from_other_nodes(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    first.admin.call("ACL", "SETUSER", "worker", "on", ">p", "+@all", "~mail")
    client = first.client()
    client.send("AUTH", "worker", "p")
    client.next_reply()
    client.send("GETJOB", "FROMPATTERN", "*")
    cluster.run(milliseconds=200)
    added(second, queue="print")
    cluster.run(seconds=1)
    assert client.silent
    assert second.admin.call("QLEN", "print") == 1
    job_id = added(second)
    cluster.until(lambda: not client.silent, within_s=1)
    assert received(client) == [job_id]


class Hostile:
    """A node with the feature that sends what it likes."""

    def __init__(self) -> None:
        self.local = LocalNode()
        extended = extension(FEATURE_PATTERNS, 17711, NOBODY, b"only-run")
        self.node = ScriptedNode(self.local, b"10.0.0.9", extension=extended)
        self.node.join()

    def send(self, payload: bytes) -> None:
        self.node.deliver(self.node.link, self.node.writer.other(kinds.PATTERNS, payload))

    @property
    def texts(self) -> list[bytes]:
        return [pattern.text for pattern in self.local.node.state.lifecycle.patterns.live]


@pytest.mark.parametrize(
    "payload",
    [
        b"\0",
        b"\0\x03ab",
        b"\x01\x01" + b"x" * 257,
        pack([b"x"]) + b"\0",
        pack([b"%d" % number for number in range(MOST_LOCAL + 1)]),
    ],
)
def test_nothing_is_taken_from_a_malformed_frame(payload: bytes) -> None:
    hostile = Hostile()
    hostile.send(payload)
    assert hostile.texts == []
    assert [text for level, text in hostile.local.host.log_lines if level == "warning" and "PATTERNS" in text]
    hostile.send(pack([b"good*"]))
    assert hostile.texts == [b"good*"]


def test_a_name_that_nobody_waits_for_is_ignored() -> None:
    hostile = Hostile()
    for name in (b"mail", b"", b"x" * 5000):
        hostile.node.deliver(hostile.node.link, hostile.node.writer.about_queue(kinds.QUEUENAME, name, 0))
    hostile.local.run(seconds=0.1)
    assert len(hostile.local.node.state.lifecycle.queues) == 0
