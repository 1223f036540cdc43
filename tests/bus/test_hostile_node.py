"""Whatever another node sends, a node keeps serving clients, its memory stays consistent, and its other links stay
open.

The input consists of the recorded frames: corrupted, truncated, spliced, repeated, out of order, with wrong lengths,
from unknown nodes and members, and about the jobs of the cluster.
"""

from __future__ import annotations

import re
from typing import Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bus.recorded import frames
from disqued.bus import kinds
from disqued.bus.bigendian import u16, u32
from disqued.bus.extension import NOBODY, extension
from disqued.bus.writer import FrameWriter, number
from disqued.core.cluster.peer import Carrier, Link
from disqued.node import ROOMS
from disqued.testing.checkers import check_logs, check_node
from disqued.testing.cluster import PORT, Cluster, Member
from disqued.testing.history import History
from support.stories import SENDER

UNKNOWN_NODE: Final = b"bad0" * 10
LISTED: Final = b"D-bad0bad0-FakePeerJobFakePeerJob0a-05a1"
OURS: Final = FrameWriter(UNKNOWN_NODE, PORT, extension=extension(ROOMS.features, 0, NOBODY, b"12345678"))
SEEDS: Final = [
    *dict.fromkeys(recorded.data for recorded in frames() if len(recorded.data) < 1000),
    *(OURS.other(kinds.HOST, name) for name in (b"", b"elsewhere.example", b"\xff" * 300)),
    *(OURS.about_queue(kind, b"mail", 5) for kind in (kinds.ENOUGH, kinds.NEEDJOBS, kinds.PAUSE)),
    *(OURS.about_jobs(kind, [LISTED, number(1), LISTED, number(2)]) for kind in kinds.LISTS),
    OURS.gossip(kinds.PING, [], 1 << 63),
    OURS.gossip(kinds.MEET, [], 0),
]
HOSTILE_IP: Final = b"10.9.9.9"
JOB_ID = re.compile(rb"D-[0-9a-f]{8}-[A-Za-z0-9+/]{24}-[0-9a-f]{4}")
QUEUES = ("mail", "fq", "nq", "bq", "pin", "pin2", "rq")


class Nowhere(Carrier):
    """The other end of a hostile connection, which does not read."""

    def write(self, data: bytes) -> None:
        """Forget it."""

    def unsent_bytes(self) -> int:
        """Nothing waits."""
        return 0

    def close(self) -> None:
        """Nobody cares."""


class Story:
    """A cluster with jobs, and hostile connections to its first node."""

    def __init__(self) -> None:
        self.cluster = Cluster(3)
        self.victim: Member = self.cluster.members[0]
        self.jobs = [self.add(queue) for queue in QUEUES]

    def add(self, queue: str) -> bytes:
        """A job with a copy on each node."""
        client = self.victim.admin
        client.send("ADDJOB", queue, "body", 1000, "REPLICATE", 3)
        self.cluster.until(lambda: not client.silent)
        job_id = client.next_reply()
        assert isinstance(job_id, bytes), job_id
        return job_id

    def attack(self, pieces: list[bytes]) -> None:
        """Send bytes to the victim, over a new connection whenever it hung up.

        Each piece arrives on a connection that belongs to its sender, so that all handlers get what was made up.
        """
        link = Link(None, self.victim.now_ms, HOSTILE_IP, self.victim.ip)
        link.carrier = Nowhere()
        for piece in pieces:
            link.bind(piece[SENDER])
            self.victim.node.link_bytes(link, piece, self.victim.now_ms)
            self.victim.flush()
            self.cluster.run(milliseconds=7)
            if link.closed:
                link = Link(None, self.victim.now_ms, HOSTILE_IP, self.victim.ip)
                link.carrier = Nowhere()

    def check(self) -> None:
        """All nodes are well, and the victim serves clients."""
        history = History()
        for member in self.cluster.members:
            check_node(member, history)
            check_logs(member, history)
        assert history.violations == []
        client = self.victim.client()
        own = client.add("own", "body", "REPLICATE", 1)
        assert own in client.take("own")
        assert client.call("ACKJOB", own) == 1

    def links(self) -> list[Link | None]:
        """The victim's connections to the other nodes."""
        peers = self.victim.node.state.view.peers
        return [peers[member.id].link for member in self.cluster.members[1:]]


def with_length(data: bytes, length: int) -> bytes:
    return data[:4] + u32(length & 0xFFFFFFFF) + data[8:]


@st.composite
def mutated(draw: st.DrawFn, senders: list[bytes], jobs: list[bytes]) -> bytes:
    """A recorded frame with random corruptions."""
    data = draw(st.sampled_from(SEEDS))
    sender = draw(st.sampled_from(senders))
    data = data[:16] + sender + data[56:]
    if draw(st.booleans()):
        job_id = draw(st.sampled_from(jobs))
        data = JOB_ID.sub(lambda _: job_id, data)
    match draw(st.integers(0, 8)):
        case 0:
            at, byte = draw(st.integers(0, len(data) - 1)), draw(st.integers(0, 255))
            data = data[:at] + bytes((byte,)) + data[at + 1 :]
        case 1:
            data = data[: draw(st.integers(0, len(data)))]
        case 2:
            other = draw(st.sampled_from(SEEDS))
            data = data[: draw(st.integers(0, len(data)))] + other[draw(st.integers(0, len(other))) :]
            data = with_length(data, len(data)) if len(data) >= 8 else data
        case 3:
            data = with_length(data, draw(st.integers(0, 0xFFFFFFFF)))
        case 4:
            data = data[:12] + u16(draw(st.integers(0, 70))) + data[14:]
        case 5:
            at, noise = draw(st.integers(144, len(data))), draw(st.binary(max_size=12))
            data = data[:at] + noise + data[at + len(noise) :]
        case 6:
            data = data[:141] + draw(st.binary(min_size=1, max_size=1)) + data[142:]
        case 7:
            data *= draw(st.integers(2, 5))
    return data


def pieces(senders: list[bytes], jobs: list[bytes]) -> st.SearchStrategy[list[bytes]]:
    return st.lists(mutated(senders, jobs), min_size=1, max_size=25)


SLOW = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@SLOW
@given(st.data())
def test_unknown_sender_changes_nothing(data: st.DataObject) -> None:
    story = Story()
    links, jobs = story.links(), story.victim.node.state.lifecycle.table.count
    sent = data.draw(pieces([UNKNOWN_NODE, b"\0" * 40, b"f00dfeed" * 5], story.jobs))

    story.attack(sent)

    assert story.links() == links
    assert not any(link is None or link.closed for link in links)
    assert story.victim.node.state.lifecycle.table.count == jobs
    story.check()


@SLOW
@given(st.data())
def test_node_stays_consistent_when_a_sender_poses_as_a_member(data: st.DataObject) -> None:
    story = Story()
    members = [member.id for member in story.cluster.members]
    sent = data.draw(pieces(members, [*story.jobs, b"D-bad0bad0-FakePeerJobFakePeerJob0a-05a1"]))

    story.attack(sent)

    story.check()
    story.cluster.run(seconds=3)
    story.check()


def test_node_stays_consistent_after_recorded_frames_in_any_order() -> None:
    for senders in ("members", "unknown"):
        story = Story()
        known = [member.id for member in story.cluster.members[1:]]
        ids = known if senders == "members" else [UNKNOWN_NODE]
        sent = [seed[:16] + ids[number % len(ids)] + seed[56:] for number, seed in enumerate(SEEDS)]

        story.attack([*sent, *reversed(sent)])

        story.check()
