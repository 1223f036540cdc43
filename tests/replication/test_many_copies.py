"""Copies of many jobs leave in one REPLJOB and are confirmed in one GOTJOBS, between nodes that announce that."""

from __future__ import annotations

from disqued.bus import kinds
from disqued.core.host import disk
from disqued.core.memory.accounting import BIG_BYTES
from disqued.replication.room import replication_of
from disqued.testing.cluster import Cluster, Member
from disqued.testing.local import LocalClient, encode
from disqued.testing.network import Sent
from replication.adding import jobs
from support.logging_node import config
from support.stories import tell

SOME = 16


def pipelined(cluster: Cluster, count: int, *options: str | int, size: int = 4) -> LocalClient:
    """Send ADDJOBs in one piece to the first member, from a new client."""
    client = cluster.members[0].client()
    client.send_bytes(b"".join(encode("ADDJOB", "mail", b"x" * size, 0, *options) for _ in range(count)))
    return client


def about_copies(sent: list[Sent]) -> list[tuple[str, int]]:
    """The messages about copies: their types and how many jobs each has."""
    found = [(message.kind, len(message.jobs) or len(message.job_ids)) for message in sent]
    return [message for message in found if message[0] in {"REPLJOB", "GOTJOB", "GOTJOBS"}]


def without_feature(knower: Member, other: Member) -> None:
    """Make a member know another one as a node that does not announce the feature."""
    knower.node.state.view.peers[other.id].features &= ~kinds.FEATURE_COPIES


def test_copies_of_pipelined_jobs_take_one_message_to_each_node_and_one_back(cluster: Cluster) -> None:
    client = pipelined(cluster, SOME, "REPLICATE", 3)
    cluster.run(milliseconds=10)
    assert len(client.replies()) == SOME
    assert about_copies(cluster.sent()) == [("REPLJOB", SOME), ("REPLJOB", SOME), ("GOTJOBS", SOME), ("GOTJOBS", SOME)]
    assert jobs(cluster) == [SOME] * 3


def test_copies_of_several_clients_share_a_message(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    clients = [first.client(), first.client()]
    for client in clients:
        for _ in range(2):
            first.node.client_bytes(client.session, encode("ADDJOB", "mail", "b", 0, "REPLICATE", 3), first.now_ms, 0)
    first.flush()
    cluster.run(milliseconds=10)
    assert about_copies(cluster.sent(to=second)) == [("REPLJOB", 4)]
    assert [len(client.replies()) for client in clients] == [2, 2]


def test_a_copy_alone_is_the_message_that_the_original_knows(cluster: Cluster) -> None:
    pipelined(cluster, 1, "REPLICATE", 3)
    cluster.run(milliseconds=10)
    assert about_copies(cluster.sent()) == [("REPLJOB", 1), ("REPLJOB", 1), ("GOTJOB", 1), ("GOTJOB", 1)]


def test_a_node_without_the_feature_gets_a_message_for_each_job(cluster: Cluster) -> None:
    first, second, third = cluster.members
    without_feature(first, second)
    without_feature(second, first)
    client = pipelined(cluster, 3, "REPLICATE", 3)
    cluster.run(milliseconds=10)
    assert len(client.replies()) == 3
    assert about_copies(cluster.sent(to=second)) == [("REPLJOB", 1)] * 3
    assert about_copies(cluster.sent(by=second)) == [("GOTJOB", 1)] * 3
    assert about_copies(cluster.sent(to=third)) == [("REPLJOB", 3)]
    assert about_copies(cluster.sent(by=third)) == [("GOTJOBS", 3)]


def test_a_message_of_many_jobs_from_a_node_without_the_feature_is_ignored(cluster: Cluster) -> None:
    _, second, third = cluster.members
    for other in cluster.members[::2]:
        without_feature(second, other)
    pipelined(cluster, 2, "REPLICATE", 3)
    cluster.run(milliseconds=10)
    assert jobs(cluster) == [2, 0, 2]
    assert about_copies(cluster.sent(by=second)) == []
    assert about_copies(cluster.sent(by=third)) == [("GOTJOBS", 2)]


def test_copies_that_need_no_reply_are_not_in_one_message_with_those_that_do(cluster: Cluster) -> None:
    second = cluster.members[1]
    client = cluster.members[0].client()
    waits = encode("ADDJOB", "mail", "b", 0, "REPLICATE", 3)
    continues = encode("ADDJOB", "mail", "b", 0, "REPLICATE", 3, "ASYNC")
    client.send_bytes(continues + continues + waits + waits + continues)
    cluster.run(milliseconds=10)
    sent = [(len(message.jobs), message.frame.message_flags) for message in cluster.sent("REPLJOB", to=second)]
    assert sent == [(2, kinds.NOREPLY), (2, 0), (1, kinds.NOREPLY)]
    assert about_copies(cluster.sent(by=second)) == [("GOTJOBS", 2)]
    assert len(client.replies()) == 5


def test_messages_keep_their_order_around_copies(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    client = pipelined(cluster, 0)
    first.node.client_bytes(client.session, encode("ADDJOB", "mail", "b", 0, "REPLICATE", 3) * 2, first.now_ms, 0)
    client.disconnect()
    cluster.run(milliseconds=10)
    assert [message.kind for message in cluster.sent(to=second)][:2] == ["REPLJOB", "DELJOBS"]
    assert jobs(cluster) == [0, 0, 0]


def test_many_copies_are_sent_in_messages_that_a_node_short_of_memory_reads(cluster: Cluster) -> None:
    second = cluster.members[1]
    pipelined(cluster, 200, "REPLICATE", 3, size=1000)
    cluster.run(milliseconds=10)
    sent = cluster.sent("REPLJOB", to=second)
    assert 3 < len(sent) < 6
    assert all(message.frame.length <= BIG_BYTES for message in sent)
    assert jobs(cluster) == [200] * 3


def test_a_large_job_travels_alone(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    client = first.client()
    sizes = (10, BIG_BYTES, 10, 10)
    client.send_bytes(b"".join(encode("ADDJOB", "mail", b"x" * size, 0, "REPLICATE", 3) for size in sizes))
    cluster.run(milliseconds=10)
    assert about_copies(cluster.sent(to=second)) == [("REPLJOB", 1), ("REPLJOB", 1), ("REPLJOB", 2)]
    assert len(client.replies()) == len(sizes)


def test_a_message_is_counted_once_with_all_its_bytes(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    traffic = first.node.state.traffic[kinds.REPLJOB]
    before = (traffic.sent.value, traffic.sent_bytes.value)
    pipelined(cluster, SOME, "REPLICATE", 3)
    cluster.run(milliseconds=10)
    sent = cluster.sent("REPLJOB", by=first)
    counted = (traffic.sent.value - before[0], traffic.sent_bytes.value - before[1])
    assert counted == (len(sent), sum(message.frame.length for message in sent))
    assert second.node.state.traffic[kinds.REPLJOB].received.value == 1


def test_jobs_before_one_that_cannot_be_read_are_kept(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    pipelined(cluster, 3, "REPLICATE", 3)
    (frame,) = (message.frame for message in cluster.sent("REPLJOB", to=second))
    cluster.run(milliseconds=10)
    second.admin.call("DEBUG", "FLUSHALL")
    data = bytearray(frame.data[frame.start : frame.end])
    data[data.rindex(b"D-")] = ord("x")
    cluster.forget_sent()
    tell(second, bytes(data))
    assert jobs(cluster) == [3, 2, 3]
    assert about_copies(cluster.sent(by=second, to=first)) == [("GOTJOBS", 2)]
    assert any("Ignoring a REPLJOB" in line for _, line in second.host.log_lines)


def test_many_copies_are_confirmed_when_all_of_them_are_written() -> None:
    cluster = Cluster(3, config=config)
    second = cluster.members[1]
    second.host.disk.hold(disk.APPEND)
    cluster.forget_sent()
    client = pipelined(cluster, SOME, "REPLICATE", 3)
    cluster.run(milliseconds=40)
    assert about_copies(cluster.sent(by=second)) == []
    assert client.silent
    second.finish()
    cluster.run(milliseconds=100)
    assert ("GOTJOBS", SOME) in about_copies(cluster.sent(by=second))
    assert len(client.replies()) == SOME


def test_copies_whose_confirmation_is_lost_are_asked_for_again(cluster: Cluster) -> None:
    first, second, _ = cluster.members
    cluster.lose("GOTJOB", by=second, count=1)
    client = pipelined(cluster, SOME, "REPLICATE", 3)
    cluster.run(milliseconds=40)
    assert client.silent
    assert len(replication_of(first.node.state).waits) == SOME
    cluster.run(milliseconds=200)
    assert len(client.replies()) == SOME
    assert jobs(cluster) == [SOME] * 3
