"""A connection to the bus port belongs to one node: frames of other nodes on it have no effect."""

from __future__ import annotations

import pytest

from disqued.bus import kinds
from disqued.bus.writer import FrameWriter
from disqued.config import Config, load
from disqued.core.cluster.peer import Carrier, Link
from disqued.testing.cluster import PORT, Cluster, Member
from disqued.testing.local import no_include
from support.stories import added

UNKNOWN = FrameWriter(b"bad0" * 10, PORT)


class Recorded(Carrier):
    """The other end of a connection, which keeps what the node sends."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data

    def unsent_bytes(self) -> int:
        return 0

    def close(self) -> None:
        """There is nothing to close."""


def connection(member: Member) -> Link:
    """A new connection to the bus port of a node."""
    link = Link(None, member.now_ms, b"10.9.9.9", member.ip)
    link.carrier = Recorded()
    return link


def send(member: Member, link: Link, *frames: bytes) -> None:
    member.node.link_bytes(link, b"".join(frames), member.now_ms)
    member.flush()


def ping(member: Member) -> bytes:
    """A PING as the member sends it."""
    return member.node.state.bus.gossip(kinds.PING, [], member.now_ms)


def lines(member: Member, text: str) -> list[str]:
    return [line for _, line in member.host.log_lines if text in line]


def little_memory() -> Config:
    return load("maxmemory 100mb\n", (), no_include)


# --- unknown nodes ----------------------------------------------------------------------------------------------------


def test_ping_of_an_unknown_node_is_answered_without_other_nodes() -> None:
    cluster = Cluster(5)
    cluster.run(seconds=2)
    first = cluster.members[0]
    link = connection(first)

    for kind in (kinds.PING, kinds.MEET):
        send(first, link, UNKNOWN.gossip(kind, [], 0))

    assert isinstance(link.carrier, Recorded)
    assert link.carrier.data.count(b"DbuZ") == 2, "a node that joins needs the answers"
    for other in cluster.members[1:]:
        assert other.id not in link.carrier.data


def test_job_messages_have_no_effect_before_the_sender_was_admitted() -> None:
    cluster = Cluster(3)
    job = added(cluster, "REPLICATE", 3)
    first, second, _ = cluster.members

    send(first, connection(first), second.node.state.bus.about_job(kinds.DELJOB, job))

    assert first in cluster.copies(job)


def test_long_frame_in_the_name_of_a_member_closes_the_link_of_an_unknown_node() -> None:
    cluster = Cluster(2)
    first, second = cluster.members
    link = connection(first)
    forged = second.node.state.bus

    send(first, link, UNKNOWN.gossip(kinds.PING, [], 0), forged.about_queue(kinds.ENOUGH, b"q", 1))

    assert link.closed
    assert lines(first, "belongs to node") == [
        f"Closing the bus link with 10.9.9.9: it belongs to node {'bad0' * 10}, and another node ID sent a frame on it"
    ]


def test_frame_in_the_name_of_a_member_does_not_lift_the_bound_of_a_new_link() -> None:
    cluster = Cluster(2)
    first, second = cluster.members
    link = connection(first)
    forged = second.node.state.bus

    send(first, link, forged.about_queue(kinds.ENOUGH, b"q", 1), forged.jobs(kinds.REPLJOB, [bytes(2 << 20)])[:500])

    assert link.closed
    assert link.reader.buffered_bytes < 1000


def test_member_cannot_send_in_the_name_of_another_member() -> None:
    cluster = Cluster(3)
    job = added(cluster, "REPLICATE", 3)
    first, second, third = cluster.members
    link = connection(first)

    send(first, link, ping(second))
    send(first, link, third.node.state.bus.about_job(kinds.DELJOB, job))

    assert link.closed
    assert first in cluster.copies(job)


def test_only_answers_count_on_a_connection_that_the_node_opened() -> None:
    cluster = Cluster(3)
    job = added(cluster, "REPLICATE", 3)
    first, second, _ = cluster.members
    link = first.node.state.view.peers[second.id].link
    assert link is not None

    send(first, link, second.node.state.bus.about_job(kinds.DELJOB, job))
    assert first in cluster.copies(job)

    send(first, link, second.node.state.bus.jobs(kinds.REPLJOB, [bytes(2 << 20)])[:500])
    assert link.closed


# --- handshakes and failures ------------------------------------------------------------------------------------------


def meet(number: int) -> bytes:
    """The MEET of a node at an invented address."""
    writer = FrameWriter(b"%040x" % number, PORT, announced_ip=b"10.1.%d.%d" % divmod(number, 250))
    return writer.gossip(kinds.MEET, [], 0)


def test_invented_addresses_do_not_keep_out_a_node_that_is_met() -> None:
    cluster = Cluster(2, meet=False)
    first, second = cluster.members
    for number in range(1, 300):
        send(first, connection(first), meet(number))
    assert len(first.node.state.view.peers) == 64

    assert first.admin.call("CLUSTER", "MEET", second.ip.decode(), PORT) == b"OK"
    for number in range(300, 600):
        send(first, connection(first), meet(number))

    assert len(first.node.state.view.peers) == 64
    cluster.until(lambda: second.id in first.node.state.view.peers, within_s=2)


def test_failure_of_a_node_that_answers_is_not_believed() -> None:
    cluster = Cluster(3)
    cluster.run(seconds=2)
    first, second, third = cluster.members
    link = connection(first)

    send(first, link, ping(second), second.node.state.bus.fail(third.id))
    assert first.sees == 2

    third.crash()
    cluster.run(milliseconds=200)
    send(first, link, second.node.state.bus.fail(third.id))
    assert first.sees == 1


def test_node_without_a_cluster_name_is_refused_if_one_is_required() -> None:
    for required in (False, True):
        cluster = Cluster(2, meet=False)
        first, second = cluster.members
        first.admin.call("CONFIG", "SET", "cluster-name", "mail")
        first.admin.call("CONFIG", "SET", "cluster-name-required", "yes" if required else "no")

        second.admin.call("CLUSTER", "MEET", first.ip.decode(), PORT)
        cluster.run(seconds=3)

        assert (first.sees == 1) is not required
        assert bool(lines(first, "it announces no cluster name (cluster-name-required)")) is required


# --- memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kinds.REPLJOB, kinds.YOURJOBS, kinds.NEEDJOBS, kinds.PAUSE, kinds.ENOUGH])
def test_frame_for_which_there_is_no_memory_is_skipped(kind: int) -> None:
    cluster = Cluster(2, config=little_memory)
    first, second = cluster.members
    link = connection(first)
    writer = second.node.state.bus
    size = 200 << 20
    whole = writer.jobs(kind, [b""]) if kind in {kinds.REPLJOB, kinds.YOURJOBS} else writer.about_queue(kind, b"", 1)
    promise = whole[:4] + (152 + size).to_bytes(4, "big") + whole[8:148] + size.to_bytes(4, "big")

    send(first, link, ping(second), promise)
    for _ in range(20):
        send(first, link, bytes(10 << 20))
        assert link.reader.buffered_bytes < 1 << 16
    assert not link.closed

    received = first.node.state.traffic[kinds.PING].received.value
    send(first, link, ping(second))
    assert first.node.state.traffic[kinds.PING].received.value == received + 1


# --- the log ----------------------------------------------------------------------------------------------------------


def test_unknown_nodes_cannot_forge_or_flood_the_log() -> None:
    cluster = Cluster(1)
    first = cluster.members[0]

    for number in range(500):
        forged = FrameWriter(b"\nnotice: no problems " + b"%019d" % number, PORT)
        send(first, connection(first), forged.gossip(kinds.PING, [], 0))
        send(first, connection(first), b"no frame")

    refused = lines(first, "10.9.9.9")
    assert lines(first, "A node at 10.9.9.9 is refused: its ID is not one of 40 hexadecimal digits")
    assert not [line for line in refused if "\n" in line]
    assert len(refused) <= 11
