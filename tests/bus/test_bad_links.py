"""Invalid frames close their link and are logged; unknown frames are ignored and logged."""

from __future__ import annotations

import pytest

from bus.recorded import Recorded, frames
from disqued.bus import kinds
from disqued.bus.bigendian import u16, u32
from disqued.bus.writer import FrameWriter
from disqued.core.cluster.peer import Link
from disqued.testing.cluster import PORT, Cluster

BROKEN = [recorded for recorded in frames() if recorded.fields is None or recorded.fields["sig"] != "DbuZ"]
"""Recorded frames that the original drops, or for which it closes the link."""


def log_of(cluster: Cluster) -> list[str]:
    return [text for _, text in cluster.members[0].host.log_lines]


def sent(cluster: Cluster, data: bytes) -> Link:
    """A new connection to the first node, on which these bytes have arrived."""
    node = cluster.members[0]
    link = Link(None, node.now_ms, b"10.9.9.9", node.ip)
    node.node.link_bytes(link, data, node.now_ms)
    node.flush()
    return link


@pytest.mark.parametrize("recorded", BROKEN, ids=lambda recorded: recorded.name)
def test_invalid_frame_closes_its_link_and_is_logged(recorded: Recorded) -> None:
    cluster = Cluster(2)
    before, links = len(log_of(cluster)), [peer.link for peer in cluster.members[0].node.state.view.peers.values()]

    link = sent(cluster, recorded.data)

    assert link.closed
    (line,) = log_of(cluster)[before:]
    assert line.startswith("Closing the bus link with 10.9.9.9: ")
    cluster.run(seconds=1)
    assert [peer.link for peer in cluster.members[0].node.state.view.peers.values()] == links
    assert not any(other is None or other.closed for other in links)


@pytest.mark.parametrize(("kind", "version"), [(16, 1), (31, 1), (65535, 1), (kinds.FAIL, 0), (kinds.REPLJOB, 2)])
def test_unknown_type_or_version_is_ignored_and_logged(kind: int, version: int) -> None:
    cluster = Cluster(2)
    member = cluster.members[1].id
    strange = b"DbuZ" + u32(184) + u16(version) + b"\0\0" + u16(kind) + FrameWriter(member, PORT).fail(member)[14:]
    before = len(log_of(cluster))

    link = sent(cluster, strange)

    assert not link.closed
    assert log_of(cluster)[before:] == [f"Unknown bus message of type {kind}, version {version}"]
    assert cluster.is_whole()


def promise(writer: FrameWriter, size: int) -> bytes:
    """The start of a REPLJOB with one job of `size` bytes."""
    return writer.jobs(kinds.REPLJOB, [bytes(size)])[:200]


def test_unknown_sender_cannot_store_more_than_a_megabyte() -> None:
    cluster = Cluster(2)
    before = len(log_of(cluster))
    unknown = FrameWriter(b"bad0" * 10, PORT)

    link = sent(cluster, unknown.gossip(kinds.PING, [], 0) + promise(unknown, 2 << 20))

    assert link.closed
    assert log_of(cluster)[before:] == [
        "Closing the bus link with 10.9.9.9: a frame says it is 2097304 bytes long, 144 to 1048576 are possible"
    ]
    assert link.reader.buffered_bytes < 1000


def test_member_may_send_long_frames_after_its_first_frame() -> None:
    cluster = Cluster(2)
    writer = cluster.members[1].node.state.bus

    link = sent(cluster, writer.gossip(kinds.PING, [], 0) + promise(writer, 2 << 20))

    assert not link.closed
    assert link.reader.buffered_bytes == 200


def test_new_member_may_send_long_frames_after_its_handshake() -> None:
    cluster = Cluster(3, meet=False)
    first, second, _ = cluster.members
    link = sent(cluster, second.node.state.bus.gossip(kinds.PING, [], 0))
    assert not link.closed
    cluster.meet()

    first.node.link_bytes(link, promise(second.node.state.bus, 2 << 20), first.now_ms)

    assert not link.closed


def test_a_job_of_five_megabytes_reaches_the_other_nodes() -> None:
    cluster = Cluster(3)
    body = "x" * (5 << 20)

    client = cluster.members[0].client()
    client.send("ADDJOB", "mail", body, 1000, "REPLICATE", 3)
    cluster.until(lambda: not client.silent)
    job = client.next_reply()
    assert isinstance(job, bytes), job

    assert cluster.copies(job) == cluster.members
    assert cluster.members[2].admin.show(job)["body"] == body.encode()
