"""Helpers of the membership tests: queries to nodes, and a scripted node that can act as a node of the original."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.bus import kinds
from disqued.bus.frame import Frame, FrameReader
from disqued.bus.writer import FrameWriter
from disqued.config import Config
from disqued.core.cluster.peer import Carrier, Link
from disqued.node import ROOMS

if TYPE_CHECKING:
    from disqued.testing.cluster import Cluster, Member
    from disqued.testing.local import LocalNode


def config(**values: object) -> Config:
    """A configuration with these values and the defaults of all others."""
    made = Config()
    for attribute, value in values.items():
        made.assign(attribute, value)
    return made


def short_node_timeout() -> Config:
    """The configuration of nodes that suspect each other after a second."""
    return config(cluster_node_timeout=1000)


def nodes(member: Member) -> dict[bytes, tuple[str, ...]]:
    """Address, flags and link state of each line of CLUSTER NODES, by ID."""
    text = member.admin.call("CLUSTER", "NODES")
    assert isinstance(text, bytes)
    lines = [line.split() for line in text.decode().splitlines()]
    return {words[0].encode(): (words[1], words[2], words[5]) for words in lines}


def flags(member: Member, other: Member) -> str:
    """The flags that one node shows for another."""
    return nodes(member)[other.id][1]


def known(member: Member) -> set[bytes]:
    """The IDs of all members that a node knows, its own included."""
    return {node_id for node_id, (_, words, _) in nodes(member).items() if words != "handshake"}


def is_mesh(cluster: Cluster) -> bool:
    """Whether all running nodes know each other and are connected."""
    running = [member for member in cluster.members if member.running]
    ids = {member.id for member in running}
    return (
        all(
            known(member) == ids and all(link == "connected" for _, _, link in nodes(member).values())
            for member in running
        )
        and cluster.is_whole()
    )


def figures(member: Member) -> dict[str, str]:
    """The fields of CLUSTER INFO."""
    text = member.admin.call("CLUSTER", "INFO")
    assert isinstance(text, bytes)
    return dict(line.split(":") for line in text.decode().split())


def logged(member: Member, text: str) -> list[str]:
    """The lines of a node's log that contain a text."""
    return [line for _, line in member.host.log_lines if text in line]


class _Wire(Carrier):
    """Records the frames that a node writes on a link."""

    def __init__(self) -> None:
        self.reader = FrameReader(table=ROOMS.message_table)
        self.frames: list[Frame] = []

    def write(self, data: bytes) -> None:
        self.reader.feed(data)
        while (frame := self.reader.next()) is not None:
            self.frames.append(frame)

    def unsent_bytes(self) -> int:
        return 0

    def close(self) -> None:
        """There is nothing to close."""


class ScriptedNode:
    """A scripted peer of a node, without a network; without an `extension` it acts as a node of the original."""

    def __init__(
        self, local: LocalNode, ip: bytes, *, node_id: bytes = b"", port: int = 7711, extension: bytes = bytes(34)
    ) -> None:
        self.local = local
        self.id = node_id or b"%040x" % int.from_bytes(ip, "big")
        self.ip = ip
        self.port = port
        self.writer = FrameWriter(self.id, port, extension=extension)
        self.wire = _Wire()
        self.connect()

    def connect(self) -> None:
        """Open a new link to the node."""
        self.link = Link(None, self.local.now_ms, remote_ip=self.ip, local_ip=b"10.0.0.1")
        self.link.carrier = self.wire

    def deliver(self, link: Link, frame: bytes) -> None:
        """Deliver a frame to the node and collect its replies."""
        self.local.node.link_bytes(link, frame, self.local.now_ms)
        self.collect()

    def collect(self) -> None:
        """Collect what the node wrote on its links."""
        self.local.flush()
        dialed, self.local.dialed = self.local.dialed, []
        for link in dialed:
            link.carrier = _Wire()
            link.flush()

    def send_gossip(self, kind: int, *entries: bytes, clock_ms: int = 0) -> None:
        """Send PING or MEET on the link that this peer opened."""
        self.deliver(self.link, self.writer.gossip(kind, list(entries), clock_ms))

    def send_pong(self, *entries: bytes, clock_ms: int = 0) -> None:
        """Send PONG on the link that the node opened to the address of this peer."""
        self.collect()
        link = self.dialed_link
        assert link is not None, "the node did not open a link"
        link.remote_ip, link.local_ip = self.ip, b"10.0.0.1"
        self.deliver(link, self.writer.gossip(kinds.PONG, list(entries), clock_ms))

    @property
    def dialed_link(self) -> Link | None:
        """The link that the node opened to this peer."""
        links = [peer.link for peer in self.local.node.state.view.peers.values() if peer.ip == self.ip]
        return links[0] if links else None

    def received(self, kind: int) -> list[Frame]:
        """The frames of one kind that the node sent on the link that this peer opened."""
        return [frame for frame in self.wire.frames if frame.kind == kind]

    def join(self) -> None:
        """Become a member with the handshake of the original."""
        self.send_gossip(kinds.MEET)
        self.local.run(milliseconds=200)
        self.send_pong()
        assert self.id in self.local.node.state.view.peers
