"""The numbers of nodes in their claims: two members never have the same one, and a number is kept."""

from __future__ import annotations

import errno
from typing import Final

import pytest

from disqued.bus import kinds
from disqued.bus.extension import NOBODY, extension
from disqued.core.jobs.claims import NO_NODE, default_number
from disqued.testing.cluster import Cluster, Member
from disqued.testing.host import FakeHost
from disqued.testing.local import LocalNode
from membership.stories import ScriptedNode

SEEDS: Final = 2000


def equal_seeds() -> tuple[int, int]:
    """The seeds of two nodes whose IDs give the same number, that with the smaller ID first."""
    found: dict[int, tuple[bytes, int]] = {}
    for seed in range(1000, 1000 + SEEDS):
        node_id = FakeHost(seed=seed).random_bytes(20).hex().encode()
        number = int(default_number(node_id))
        if number in found:
            (_, low), (_, high) = sorted((found[number], (node_id, seed)))
            return low, high
        found[number] = (node_id, seed)
    raise AssertionError("all numbers differ")


SMALLER, GREATER = equal_seeds()


def number(member: Member) -> int:
    return int(member.node.state.view.claim_number)


def by_id(member: Member) -> int:
    return int(default_number(member.id))


def equals(*, meet: bool = True) -> tuple[Cluster, Member, Member, Member]:
    """Three nodes; the numbers of the last two come from IDs that give the same one, the smaller ID first."""
    cluster = Cluster(1, meet=False)
    smaller, greater = cluster.add(SMALLER), cluster.add(GREATER)
    assert by_id(smaller) == by_id(greater)
    assert smaller.id < greater.id
    if meet:
        cluster.meet()
        cluster.run(seconds=2)
    return cluster, cluster.members[0], smaller, greater


def test_the_node_with_the_greater_id_takes_the_next_free_number() -> None:
    cluster, other, smaller, greater = equals()
    assert number(smaller) == by_id(smaller)
    assert number(greater) == by_id(greater) + 1
    for member in (other, smaller):
        view = member.node.state.view
        assert view.claim_number_of(view.peers[greater.id]) == number(greater)
    assert {sent.sender for sent in cluster.sent("TOKENBITS")} == {greater}


def test_a_number_is_kept_after_a_restart_and_after_the_other_node_is_gone() -> None:
    cluster, other, smaller, greater = equals()
    taken = number(greater)
    assert f"vars node {greater.id.decode()} claim-number {taken}\n" in (greater.host.nodes_text or "")
    for member in (other, smaller):
        member.admin.call("CLUSTER", "FORGET", greater.id)
        greater.admin.call("CLUSTER", "FORGET", member.id)
    greater.restart()
    cluster.run(seconds=1)
    assert number(greater) == taken


def test_restarted_nodes_know_the_numbers_of_the_others() -> None:
    cluster, other, smaller, greater = equals()
    for member in cluster.members:
        member.restart()
    assert number(greater) == by_id(greater) + 1
    for member in (other, smaller):
        view = member.node.state.view
        assert view.claim_number_of(view.peers[greater.id]) == number(greater)


def test_no_claims_are_given_until_the_number_is_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, _, smaller, greater = equals(meet=False)
    with monkeypatch.context() as full:
        full.setattr(greater.host, "save_nodes", no_space)
        cluster.meet()
        cluster.run(seconds=2)
        _no_claims(greater)
    assert smaller.client().call("GETJOB", "NOHANG", "WITHCLAIM", "FROM", "mail") is None
    cluster.run(seconds=2)
    assert greater.client().call("GETJOB", "NOHANG", "WITHCLAIM", "FROM", "mail") is None


def no_space(_text: str, _sync: bool) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def _no_claims(greater: Member) -> None:
    client = greater.client()
    reply = client.call("GETJOB", "NOHANG", "WITHCLAIM", "FROM", "mail")
    assert str(reply).startswith("CLOCK This node gives no claims until it has saved its number")
    assert client.call("GETJOB", "NOHANG", "FROM", "mail") is None


def test_a_new_id_has_its_own_number() -> None:
    _, _, _, greater = equals()
    assert greater.admin.call("CLUSTER", "RESET", "HARD") == b"OK"
    assert number(greater) == by_id(greater)


def test_nodes_with_different_numbers_send_nothing_about_them() -> None:
    cluster = Cluster(3)
    cluster.run(seconds=30)
    assert not cluster.sent("TOKENBITS")


@pytest.mark.parametrize("payload", [b"", b"x", b"-1", b"65535", b"123456", b"1.5", b"\xff", b"9" * 50])
def test_invalid_numbers_are_ignored(payload: bytes) -> None:
    local = LocalNode()
    scripted = ScriptedNode(local, b"10.0.0.9", extension=extension(kinds.FEATURE_CLAIMS, 17711, NOBODY, b"only-run"))
    scripted.join()
    peer = local.node.state.view.peers[scripted.id]
    for word in (b"4711", payload):
        scripted.deliver(scripted.link, scripted.writer.other(kinds.TOKENBITS, word))
    assert peer.claim_number == 4711


def test_no_node_has_the_number_that_marks_claims_as_stale() -> None:
    numbers = {int(default_number(b"%040x" % number)) for number in range(200_000)}
    assert NO_NODE not in numbers
    assert len(numbers) > 60_000
