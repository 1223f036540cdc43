"""The secret of a cluster: nodes prove it to each other on every connection before anything else is sent or taken."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from disqued.bus import kinds
from disqued.bus.bigendian import u32
from disqued.bus.extension import NOBODY, extension
from disqued.bus.frame import FrameReader
from disqued.bus.writer import FrameWriter
from disqued.config import Config
from disqued.core.cluster.peer import Carrier, Link
from disqued.membership.secrets import ACCEPTOR, DIALLER, NONCE_BYTES, parse, prove
from disqued.node import ROOMS
from disqued.testing.cluster import PORT, Cluster, Member
from membership.stories import ScriptedNode, config, figures, is_mesh, logged
from support.stories import added

PATH = "/etc/disque/secret"
OLD, NEW = b"0123456789abcdef", b"another secret of the cluster"
NODE = b"bad0" * 10
OURS = FrameWriter(NODE, PORT, extension=extension(ROOMS.features, 0, NOBODY, b"12345678"))
NONCE = bytes(range(NONCE_BYTES))


def with_secret(*, required: bool = True) -> Callable[[], Config]:
    return lambda: config(cluster_secret_required=required, cluster_node_timeout=2000)


def give(member: Member, *secrets: bytes) -> None:
    """Write the secrets into the node's file, and have the node use it."""
    member.host.secret_files[PATH] = b"\n".join(secrets)
    assert member.admin.call("CONFIG", "SET", "cluster-secret-file", PATH if secrets else "") == b"OK"


def secure_cluster(count: int, *secrets: bytes, required: bool = True) -> Cluster:
    cluster = Cluster(count, meet=False, config=with_secret(required=required))
    for member in cluster.members:
        give(member, *(secrets or (OLD,)))
    cluster.meet()
    return cluster


def proven(member: Member) -> list[bool]:
    """For each connection that the node opened, whether the other end has proven the secret."""
    return [bool(peer.link and peer.link.proven) for peer in member.node.state.view.peers.values()]


class Wire(Carrier):
    """The other end of a connection to a node: sends frames and keeps the answers."""

    def __init__(self, member: Member, *, node_id: bytes = NODE) -> None:
        self.member = member
        self.writer = FrameWriter(node_id, PORT, extension=extension(ROOMS.features, 0, NOBODY, b"12345678"))
        self.data = b""
        self.link = Link(None, member.now_ms, b"10.9.9.9", member.ip)
        self.link.carrier = self

    def write(self, data: bytes) -> None:
        self.data += data

    def unsent_bytes(self) -> int:
        return 0

    def close(self) -> None:
        """There is nothing to close."""

    def send(self, *frames: bytes) -> None:
        self.member.node.link_bytes(self.link, b"".join(frames), self.member.now_ms)
        self.member.flush()

    def challenge(self) -> tuple[bytes, list[bytes]]:
        """Send CHALLENGE; returns the nonce and the proofs of the node."""
        self.send(self.writer.other(kinds.CHALLENGE, u32(1) + NONCE))
        (payload,) = self.answers(kinds.RESPONSE)
        proofs = payload[36:]
        assert len(proofs) == 32 * int.from_bytes(payload[:4], "big")
        return payload[4:36], [proofs[at : at + 32] for at in range(0, len(proofs), 32)]

    def answers(self, kind: int | None = None) -> list[bytes]:
        """The payloads of the frames that the node sent, of one kind."""
        reader = FrameReader(table=ROOMS.message_table)
        reader.feed(self.data)
        found = []
        while (frame := reader.next()) is not None:
            if kind in {None, frame.kind}:
                found.append(frame.payload)
        return found

    def prove(self, secret: bytes = OLD, *, end: bytes = DIALLER, answering: bytes | None = None) -> None:
        """Send CHALLENGE and a PROOF, which is right unless the arguments say otherwise."""
        nonce, _ = self.challenge()
        nonces = NONCE + (answering or nonce)
        sender = self.writer.other(kinds.PROOF, b"")[16:56]
        self.send(self.writer.other(kinds.PROOF, prove(secret, end, nonces, sender, self.member.id)))


# --- a cluster with a secret ------------------------------------------------------------------------------------------


def test_nodes_with_the_secret_form_a_cluster_and_replicate() -> None:
    cluster = secure_cluster(4)
    cluster.until(lambda: is_mesh(cluster))

    job = added(cluster, "REPLICATE", 4)

    assert cluster.copies(job) == cluster.members
    for member in cluster.members:
        assert proven(member) == [True, True, True]
        assert figures(member)["cluster_links_unproven"] == "0"


def test_each_connection_begins_with_the_exchange_of_proofs() -> None:
    cluster = secure_cluster(2)
    first, second = cluster.members
    frames = [sent.kind for sent in cluster.network.sent if {sent.sender, sent.receiver} == {first, second}]
    assert frames[:5] == ["CHALLENGE", "RESPONSE", "PROOF", "MEET", "PONG"]


def test_restarted_node_rejoins_with_the_secret() -> None:
    cluster = secure_cluster(3)
    cluster.until(lambda: is_mesh(cluster))
    back = cluster.members[2]
    back.config.assign("cluster_secret_file", PATH)
    back.restart()
    cluster.until(lambda: is_mesh(cluster))
    assert all(all(proven(member)) for member in cluster.members)


def test_nodes_with_different_secrets_do_not_meet() -> None:
    cluster = Cluster(2, meet=False, config=with_secret())
    first, second = cluster.members
    give(first, OLD)
    give(second, NEW)

    first.admin.call("CLUSTER", "MEET", second.ip.decode(), PORT)
    cluster.run(seconds=5)

    assert first.sees == second.sees == 0
    assert len(logged(first, "it has another cluster secret (cluster-secret-file)")) == 1
    assert not cluster.sent("MEET")
    assert not cluster.sent("PING")


def test_node_without_the_secret_is_refused_and_both_sides_say_so() -> None:
    for opener in (0, 1):
        cluster = Cluster(2, meet=False, config=with_secret())
        secure, open_node = cluster.members
        give(secure, OLD)

        cluster.members[opener].admin.call("CLUSTER", "MEET", cluster.members[1 - opener].ip.decode(), PORT)
        cluster.run(seconds=5)

        assert secure.sees == open_node.sees == 0
        assert not cluster.sent("PONG")
        if opener == 0:
            assert logged(secure, "is refused: it has no cluster secret (cluster-secret-file)")
            assert logged(open_node, "asks for the cluster secret, and this node has none (cluster-secret-file)")
        else:
            assert logged(secure, "is refused: it did not prove the cluster secret (cluster-secret-file)")
            assert logged(open_node, "it requires the cluster secret, and this node has none (cluster-secret-file)")


def test_output_that_waits_for_the_proof_is_bounded() -> None:
    cluster = secure_cluster(2)
    first, second = cluster.members
    cluster.cut(first, second)
    cluster.cut(second, first)
    cluster.network.reset(first, second)
    cluster.run(milliseconds=300)
    link = first.node.state.view.peers[second.id].link
    assert link is not None
    assert link.holding
    link.congested_bytes = 10_000

    for number in range(200):
        first.tell("ADDJOB", "mail", "x" * 1000, 0, "ASYNC", "REPLICATE", 2, "TTL", 1000 + number)
    assert link.out_bytes <= 12_000

    cluster.heal()
    cluster.until(lambda: is_mesh(cluster))


# --- a node that does not know the secret -----------------------------------------------------------------------------


def test_nothing_but_the_challenge_is_answered_without_a_proof() -> None:
    cluster = secure_cluster(3)
    cluster.until(lambda: is_mesh(cluster))
    first = cluster.members[0]
    job = added(cluster, "REPLICATE", 3)
    others = [member.id for member in cluster.members[1:]]

    for frame in (
        OURS.gossip(kinds.PING, [], 0),
        OURS.gossip(kinds.MEET, [], 0),
        OURS.about_job(kinds.DELJOB, job),
        OURS.about_queue(kinds.PAUSE, b"mail", 3),
        OURS.other(kinds.PROOF, bytes(32)),
    ):
        wire = Wire(first)
        wire.send(frame)
        assert set(wire.answers()) <= {u32(0xFFFFFFFF) + bytes(32)}
        wire.send(frame)
        assert len(wire.answers()) <= 1
        assert not any(node_id in wire.data for node_id in others)

    cluster.run(seconds=3)
    assert first in cluster.copies(job)
    assert len(first.node.state.view.peers) == 2


def test_connection_of_a_node_that_does_not_prove_the_secret_is_closed_after_the_answer() -> None:
    cluster = secure_cluster(2)
    wire = Wire(cluster.members[0])

    wire.send(OURS.gossip(kinds.PING, [], 0))
    cluster.run(milliseconds=500)
    assert wire.answers() == [u32(0xFFFFFFFF) + bytes(32)]
    assert not wire.link.closed, "it has time to read the answer"

    cluster.run(seconds=1)
    assert wire.link.closed


def test_proof_makes_the_connection_that_of_its_sender() -> None:
    cluster = secure_cluster(2)
    first, second = cluster.members
    wire = Wire(first)

    wire.prove()
    assert wire.link.proven
    assert wire.link.sender == NODE
    wire.send(second.node.state.bus.gossip(kinds.PING, [], 0))

    assert wire.link.closed, "it proved to be another node"


@pytest.mark.parametrize(
    "wrong",
    [
        {"secret": NEW},
        {"end": ACCEPTOR},
        {"answering": bytes(32)},
    ],
    ids=["another secret", "the proof of the other end", "an earlier nonce"],
)
def test_wrong_proof_closes_the_connection(wrong: dict[str, bytes]) -> None:
    cluster = secure_cluster(2)
    wire = Wire(cluster.members[0])

    wire.prove(**wrong)

    assert not wire.link.proven
    assert wire.link.closed
    assert logged(cluster.members[0], "at 10.9.9.9 is refused: it has another cluster secret")


def test_proof_cannot_be_sent_back() -> None:
    cluster = secure_cluster(2)
    wire = Wire(cluster.members[0])
    _, proofs = wire.challenge()

    wire.send(wire.writer.other(kinds.PROOF, proofs[0]))

    assert wire.link.closed


def test_proof_is_of_no_use_on_another_connection() -> None:
    cluster = secure_cluster(2)
    first = cluster.members[0]
    one, two = Wire(first), Wire(first)
    nonce, _ = one.challenge()
    two.challenge()
    proof = one.writer.other(kinds.PROOF, prove(OLD, DIALLER, NONCE + nonce, NODE, first.id))

    two.send(proof)
    assert two.link.closed

    one.send(proof)
    assert one.link.proven


def test_frames_before_the_proof_are_bounded() -> None:
    cluster = secure_cluster(2)
    wire = Wire(cluster.members[0])

    wire.send(OURS.other(kinds.HOST, bytes(2000))[:500])

    assert wire.link.closed
    assert wire.link.reader.buffered_bytes <= 500


def test_answer_without_a_right_proof_gets_nothing_of_what_waits() -> None:
    for answer in (u32(1) + bytes(64), u32(2) + bytes(96), u32(0) + bytes(32), u32(3) + bytes(128), b"", u32(1 << 31)):
        cluster = secure_cluster(1)
        local = cluster.members[0]
        fake = ScriptedNode(local, b"10.0.9.9", extension=OURS.other(kinds.PROOF, b"")[102:136])
        local.admin.call("CLUSTER", "MEET", "10.0.9.9", PORT)
        local.run(milliseconds=200)
        link = fake.dialed_link
        assert link is not None
        link.remote_ip = fake.ip
        link.carrier = wire = Wire(local)

        fake.deliver(link, fake.writer.other(kinds.RESPONSE, answer))
        local.run(milliseconds=200)

        assert wire.data == b""
        assert link.closed
        assert local.sees == 0


# --- without `required` -----------------------------------------------------------------------------------------------


def test_mixed_cluster_works_while_the_secret_is_not_required() -> None:
    cluster = Cluster(3, meet=False, config=with_secret(required=False))
    first, second, bare = cluster.members
    give(first, OLD)
    give(second, OLD)
    cluster.meet()
    cluster.until(lambda: is_mesh(cluster))

    job = added(cluster, "REPLICATE", 3)

    assert cluster.copies(job) == cluster.members
    assert figures(first)["cluster_links_unproven"] == figures(second)["cluster_links_unproven"] == "1"
    assert figures(bare)["cluster_links_unproven"] == "0"
    assert first.node.state.view.peers[second.id].link.proven  # type: ignore[union-attr]
    assert logged(first, "are ACCEPTED (cluster-secret-required no)")
    assert logged(first, "did not prove the cluster secret and is accepted (cluster-secret-required no)")


def test_another_secret_is_refused_even_if_none_is_required() -> None:
    cluster = Cluster(2, meet=False, config=with_secret(required=False))
    first, second = cluster.members
    give(first, OLD)
    give(second, NEW)

    first.admin.call("CLUSTER", "MEET", second.ip.decode(), PORT)
    cluster.run(seconds=5)

    assert first.sees == second.sees == 0


def test_original_joins_only_if_the_secret_is_not_required() -> None:
    for required in (True, False):
        cluster = Cluster(1, config=with_secret(required=required))
        local = cluster.members[0]
        give(local, OLD)
        original = ScriptedNode(local, b"10.0.9.9")

        original.send_gossip(kinds.MEET)
        local.run(milliseconds=200)
        if not required:
            original.send_pong()

        assert (original.id in local.node.state.view.peers) is not required
        assert bool(original.received(kinds.PONG)) is not required


def test_silence_of_an_original_is_logged() -> None:
    cluster = secure_cluster(1)
    local = cluster.members[0]
    original = ScriptedNode(local, b"10.0.9.9")
    local.admin.call("CLUSTER", "MEET", "10.0.9.9", PORT)
    local.run(milliseconds=200)
    original.collect()
    assert original.dialed_link is not None
    original.dialed_link.remote_ip = original.ip

    local.run(seconds=3)

    assert logged(local, f"The node at 10.0.9.9:{PORT} did not prove the cluster secret in time (cluster-secret-file)")
    assert not local.node.state.view.peers


def test_secret_is_enabled_in_a_running_cluster_without_losing_a_member() -> None:
    cluster = Cluster(3, config=with_secret(required=False))
    cluster.until(lambda: is_mesh(cluster))
    for member in cluster.members:
        give(member, OLD)
        cluster.run(seconds=1)
        assert cluster.is_whole()
    for member in cluster.members:
        for other in cluster.members:
            if other is not member:
                cluster.network.reset(member, other)
        cluster.until(lambda: is_mesh(cluster))
    assert all(figures(member)["cluster_links_unproven"] == "0" for member in cluster.members)
    for member in cluster.members:
        assert member.admin.call("CONFIG", "SET", "cluster-secret-required", "yes") == b"OK"
    cluster.run(seconds=5)
    assert is_mesh(cluster)


def test_node_whose_connection_is_older_than_its_secret_does_not_log_that_it_has_none() -> None:
    cluster = Cluster(2, config=with_secret(required=False))
    cluster.until(lambda: is_mesh(cluster))
    for member in cluster.members:
        give(member, OLD)
    for member in cluster.members:
        assert member.admin.call("CONFIG", "SET", "cluster-secret-required", "yes") == b"OK"

    cluster.run(seconds=5)

    assert is_mesh(cluster)
    assert any(logged(member, "requires the cluster secret, and the connection is") for member in cluster.members)
    assert not any(logged(member, "this node has none") for member in cluster.members)


def test_requiring_the_secret_closes_connections_without_a_proof() -> None:
    cluster = Cluster(2, config=with_secret(required=False))
    cluster.until(lambda: is_mesh(cluster))
    first, second = cluster.members
    job = added(cluster, "REPLICATE", 2)
    give(first, OLD)
    assert first.admin.call("CONFIG", "SET", "cluster-secret-required", "yes") == b"OK"

    link = next(end.link for end in cluster.network.ends_of(first) if end.link.peer is None)
    second.node.state.ready.put(
        second.node.state.view.peers[first.id].link,  # type: ignore[arg-type]
        second.node.state.bus.about_job(kinds.DELJOB, job),
    )
    second.flush()
    cluster.run(seconds=3)

    assert first in cluster.copies(job)
    assert link.refused
    assert second.id in first.node.state.view.peers, "it stays a member, which cannot connect"


# --- rotation ---------------------------------------------------------------------------------------------------------


def test_secret_is_rotated_while_the_cluster_runs() -> None:
    cluster = secure_cluster(3, OLD)
    cluster.until(lambda: is_mesh(cluster))
    for secrets in ((OLD, NEW), (NEW, OLD), (NEW,)):
        for member in cluster.members:
            member.host.secret_files[PATH] = b"\n".join(secrets)
            member.node.state.events.files_changed()
            for other in cluster.members:
                if other is not member:
                    cluster.network.reset(member, other)
            cluster.until(lambda: is_mesh(cluster))
    assert all(all(proven(member)) for member in cluster.members)
    wire = Wire(cluster.members[0])
    wire.prove(OLD)
    assert wire.link.closed


def test_connections_continue_when_their_secret_is_removed() -> None:
    cluster = secure_cluster(2, OLD)
    cluster.until(lambda: is_mesh(cluster))
    first, second = cluster.members
    links = [first.node.state.view.peers[second.id].link, second.node.state.view.peers[first.id].link]
    for member in cluster.members:
        give(member, NEW)
    cluster.run(seconds=5)
    assert [first.node.state.view.peers[second.id].link, second.node.state.view.peers[first.id].link] == links
    assert is_mesh(cluster)


# --- the file ---------------------------------------------------------------------------------------------------------


def test_file_has_one_or_two_secrets() -> None:
    assert parse(OLD + b"\n") == (OLD,)
    assert parse(b"\n " + OLD + b" \r\n\n" + NEW) == (OLD, NEW)
    for content in (b"", b"\n\n", b"short", b"x" * 513, b"\n".join((OLD, NEW, OLD))):
        with pytest.raises(ValueError, match=r"secret") as error:
            parse(content)
        assert not re.search(rb"short|xxxx|" + OLD, str(error.value).encode())


def test_wrong_file_is_refused_and_the_secrets_before_stay() -> None:
    cluster = secure_cluster(2)
    first = cluster.members[0]
    before = first.node.state.secrets

    first.host.secret_files["/etc/bad"] = b"short"
    assert str(first.admin.call("CONFIG", "SET", "cluster-secret-file", "/etc/bad")).startswith(
        "ERR cluster-secret-file /etc/bad: secret 1 has 5 bytes, expected 16 to 512"
    )
    assert str(first.admin.call("CONFIG", "SET", "cluster-secret-file", "/etc/none")) == (
        "ERR cannot read cluster-secret-file /etc/none: No such file or directory"
    )
    del first.host.secret_files[PATH]
    first.node.state.events.files_changed()

    assert first.node.state.secrets == before
    assert logged(first, "Keeping the cluster secrets that were read before")
    assert first.admin.call("CONFIG", "GET", "cluster-secret-file") == [b"cluster-secret-file", PATH.encode()]


def test_secret_is_never_shown() -> None:
    cluster = secure_cluster(2)
    first = cluster.members[0]
    first.node.state.events.files_changed()
    shown = [first.admin.call(*words) for words in (("CONFIG", "GET", "*"), ("INFO",), ("SLOWLOG", "GET"))]
    text = repr(shown) + repr(first.host.log_lines)
    assert OLD.decode() not in text
