"""The recorded conversation of a scripted peer with one node of the original, compared with one of our nodes.

Our node has the recorded node's ID and lives in virtual time, which begins when the recording did. The recorded frames
of the peer are fed to it on connections like the recorded ones; what it sends is collected step by step and compared
field by field. `fake` is the scripted peer; `fake2` a third node, whose frames were not recorded: the actions in
`test_fake_peer.py` say what it does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from bus.recorded import Fields, cut, decoded
from disqued.bus import kinds
from disqued.bus.writer import FrameWriter
from disqued.config import Config
from disqued.core.cluster.peer import Carrier, Link
from disqued.testing.host import FakeHost
from disqued.testing.local import LocalClient, LocalNode
from disqued.testing.network import Endpoint, Network

START_MS = 1_795_231_964_006
"""When the recording began."""
HOME = b"127.0.0.1"
PORT = 17711
NODE_TIMEOUT_MS = 3000
JOB_ID = re.compile(rb"D-d72cb83f-[A-Za-z0-9+/]{24}-[0-9a-f]{4}")
"""Jobs that the node under test created: their IDs are random."""


@dataclass(eq=False)
class ScriptedPeer:
    """A scripted node."""

    name: str
    node_id: bytes
    port: int
    answering: bool = True
    """Whether it answers PING and MEET."""
    answers_as: bytes = b""
    """Another ID that it switches to."""
    leaving: bool = False

    def pong(self) -> bytes:
        """Its answer to a PING."""
        writer = FrameWriter(self.answers_as or self.node_id, self.port, leaving=self.leaving)
        return writer.gossip(kinds.PONG, [], 0)

    def writer(self, port: int = 0) -> FrameWriter:
        """Writes its frames; with another port in the header if one is given."""
        return FrameWriter(self.node_id, port or self.port)


@dataclass(frozen=True, slots=True)
class SentFrame:
    """A frame that our node sent."""

    peer: str
    connection: str
    fields: Fields


class Wire(Carrier):
    """Our node's end of a connection with a peer."""

    def __init__(self, network: ScriptedNetwork, peer: ScriptedPeer, link: Link, connection: str) -> None:
        self.network = network
        self.peer = peer
        self.link = link
        self.connection = connection
        self.open = True

    def write(self, data: bytes) -> None:
        """Note the frames; a PING or MEET is answered when the node is done with writing."""
        for frame in cut(data):
            self.network.frames.append(SentFrame(self.peer.name, self.connection, decoded(frame)))
            if frame.kind in {kinds.PING, kinds.MEET} and self.peer.answering:
                self.network.answers.append((self.link, self.peer.pong()))

    def unsent_bytes(self) -> int:
        """The network takes everything."""
        return 0

    def close(self) -> None:
        """Note it."""
        self.open = False


class ScriptedNetwork(Network):
    """Connects the node with the peers."""

    def __init__(self, peers: list[ScriptedPeer]) -> None:
        super().__init__(START_MS)
        self.peers = {peer.port: peer for peer in peers}
        self.frames: list[SentFrame] = []
        self.answers: list[tuple[Link, bytes]] = []

    def carried(self, local: Endpoint) -> bool:
        """Give the node the answers of the peers."""
        answers, self.answers = self.answers, []
        for link, data in answers:
            if isinstance(link.carrier, Wire) and link.carrier.open:
                local.node.link_bytes(link, data, local.now_ms)
        return len(answers) > 0

    def dial(self, local: Endpoint, link: Link) -> None:
        """Connect a link to the peer that listens there."""
        assert link.peer is not None
        peer = self.peers.get(int(link.peer.bus_port) - 10000)
        if peer is None:
            local.node.link_closed(link, local.now_ms)
            return
        link.carrier = Wire(self, peer, link, "real opened")
        link.local_ip = link.remote_ip = HOME


@dataclass
class Stage:
    """Our node and the peers around it."""

    fake: ScriptedPeer
    fake2: ScriptedPeer
    seed: int
    """The seed of the node's random numbers."""
    real: LocalNode = field(init=False)
    network: ScriptedNetwork = field(init=False)
    admin: LocalClient = field(init=False)
    recorded_ids: list[bytes] = field(default_factory=list)
    """IDs of jobs that the recorded node created, in the order of their first mention: the order of ours."""
    _incoming: dict[str, Link] = field(default_factory=dict)
    """Connections that the peers opened."""

    def __post_init__(self) -> None:
        """Start the node."""
        self.network = ScriptedNetwork([self.fake, self.fake2])
        config = Config()
        config.port, config.cluster_node_timeout = PORT, NODE_TIMEOUT_MS
        host = FakeHost(seed=self.seed, now_ms=START_MS)
        self.real = LocalNode(
            config, host, node_id=b"d72cb83f543b931538cae0886ed63e0c867e3560", ip=HOME, network=self.network
        )
        self.admin = self.real.client()

    @property
    def elapsed_ms(self) -> int:
        """Since the beginning, as `t_ms` of the recording."""
        return self.real.now_ms - START_MS

    def run_to(self, at_ms: int) -> None:
        """Let time pass until `at_ms` of the recording."""
        if at_ms > self.elapsed_ms:
            self.real.run(milliseconds=at_ms - self.elapsed_ms)

    def run(self, milliseconds: int) -> None:
        """Let time pass."""
        self.real.run(milliseconds=milliseconds)

    def receives(self, peer: ScriptedPeer, data: bytes) -> None:
        """Our node gets bytes from a peer, on the connection that the peer opened."""
        self.real.node.link_bytes(self.incoming(peer), data, self.real.now_ms)
        self.real.flush()

    def incoming(self, peer: ScriptedPeer) -> Link:
        """The connection that a peer opened; a new one if it was closed."""
        link = self._incoming.get(peer.name)
        if link is None or self.closed(peer):
            link = Link(None, self.real.now_ms, remote_ip=HOME, local_ip=HOME)
            link.carrier = Wire(self.network, peer, link, f"{peer.name} opened")
            self._incoming[peer.name] = link
        return link

    def closed(self, peer: ScriptedPeer) -> bool:
        """Whether our node closed the connection that a peer opened."""
        link = self._incoming[peer.name]
        return isinstance(link.carrier, Wire) and not link.carrier.open

    def our_ids(self) -> list[bytes]:
        """IDs of jobs that our node created, in the order of their first mention."""
        found: dict[bytes, None] = {}
        for sent in self.network.frames:
            for job in sent.fields.get("jobs", []):
                if JOB_ID.fullmatch(job["id"].encode()):
                    found[job["id"].encode()] = None
        return list(found)

    def note_mentioned(self, fields: Fields) -> None:
        """Record jobs that the recorded node mentioned."""
        for job in fields.get("jobs", []):
            job_id = job["id"].encode()
            if JOB_ID.fullmatch(job_id) and job_id not in self.recorded_ids:
                self.recorded_ids.append(job_id)

    def to_ours(self, data: bytes) -> bytes:
        """Recorded bytes with our IDs of jobs."""
        names = dict(zip(self.recorded_ids, self.our_ids(), strict=False))
        return JOB_ID.sub(lambda match: names.get(match[0], match[0]), data)

    def to_recorded(self, text: str) -> str:
        """A text of ours with the recorded IDs of jobs."""
        names = dict(zip(self.our_ids(), self.recorded_ids, strict=False))
        return JOB_ID.sub(lambda match: names.get(match[0], match[0]), text.encode("latin-1")).decode("latin-1")


def comparable(fields: Fields, stage: Stage | None = None) -> Fields:
    """The fields of a frame without random values and times; `stage` for frames of ours."""
    kept: dict[str, Any] = {
        name: value for name, value in fields.items() if name not in {"gossip", "count", "totlen", "notused1_zero"}
    }
    if "jobs" in fields:
        kept["jobs"] = [
            job | {"etime": (job["etime"] + 60) // 120, "ctime": 0, "nodes": sorted(job["nodes"])}
            for job in fields["jobs"]
        ]
    if stage is not None:
        for job in kept.get("jobs", []):
            job["id"] = stage.to_recorded(job["id"])
        if "jobid" in kept:
            kept["jobid"] = stage.to_recorded(kept["jobid"])
    return kept
