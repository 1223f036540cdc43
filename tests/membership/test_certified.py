"""Names in the certificates of nodes: which hosts and addresses they cover, and which of them a node must show."""

from __future__ import annotations

import pytest

from disqued.bus import kinds
from disqued.core.cluster.peer import Link
from disqued.membership import seeds
from disqued.membership.certified import covers, fits, names_in
from disqued.testing.cluster import Cluster
from membership.stories import logged


def test_only_names_and_addresses_of_a_certificate_count() -> None:
    certificate = [
        ("DNS", "N1.Example.com"),
        ("DNS", "192.0.2.9"),
        ("IP Address", "192.0.2.1"),
        ("IP Address", "2001:DB8:0:0:0:0:0:1"),
        ("IP Address", "<invalid>"),
        ("email", "n2.example.com"),
    ]
    assert names_in(certificate) == (b"n1.example.com", b"192.0.2.1", b"2001:db8::1")


@pytest.mark.parametrize(
    ("name", "wanted", "covered"),
    [
        (b"n1.example.com", b"n1.example.com", True),
        (b"n1.example.com", b"N1.example.com.", True),
        (b"n1.example.com", b"n2.example.com", False),
        (b"*.example.com", b"n1.example.com", True),
        (b"*.example.com", b"example.com", False),
        (b"*.example.com", b"a.n1.example.com", False),
        (b"*.com", b"example.com", False),
        (b"*", b"example", False),
        (b"n*.example.com", b"n1.example.com", False),
        (b"*.0.2.1", b"192.0.2.1", False),
        (b"192.0.2.1", b"192.0.2.1", True),
        (b"192.0.2.1", b"::ffff:192.0.2.1", True),
        (b"192.0.2.1", b"192.0.2.2", False),
        (b"2001:db8::1", b"2001:DB8:0::1", True),
        (b"n1.example.com", b"", False),
    ],
)
def test_certificate_covers_what_it_names(name: bytes, wanted: bytes, covered: bool) -> None:
    assert covers((name,), wanted) is covered


def test_name_of_a_seed_counts_for_its_addresses_until_the_node_has_told_its_own() -> None:
    cluster = Cluster(1)
    state = cluster.members[0].node.state
    seeds.found(state, b"nodes.example.com", [b"192.0.2.1"])
    names = (b"nodes.example.com",)
    assert fits(state, names, b"", b"192.0.2.1")
    assert not fits(state, names, b"", b"192.0.2.2")
    assert not fits(state, names, b"n1.example.com", b"192.0.2.1")
    assert not fits(state, (), b"", b"")


@pytest.mark.parametrize(("name", "admitted"), [(b"10.0.0.1", True), (b"192.0.2.1", False)])
def test_connection_counts_only_if_its_certificate_fits(name: bytes, admitted: bool) -> None:
    cluster = Cluster(2)
    cluster.run(seconds=2)
    one, other = cluster.members
    link = Link(None, other.now_ms, one.ip)
    link.names = (name,)
    ping = one.node.state.bus.gossip(kinds.PING, [], one.now_ms)
    other.node.link_bytes(link, ping, other.now_ms)
    assert link.sender == (one.id if admitted else b"")
    assert link.refused is not admitted
    assert len(logged(other, "its certificate is for 192.0.2.1, not for 10.0.0.1")) == (0 if admitted else 1)
