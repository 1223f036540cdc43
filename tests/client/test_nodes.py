"""The order in which nodes are tried."""

from __future__ import annotations

import random

import pytest

from disqued.client.nodes import Address, Nodes, parse_address
from disqued.client.values import Hello, NodeInfo

A, B, C = (Address(f"10.0.0.{number}", 7711) for number in (1, 2, 3))


def hello(me: Address, **priorities: int) -> Hello:
    """The HELLO of `me`, with the priority of each of the nodes a, b, c that it knows."""
    addresses = {"a": A, "b": B, "c": C}
    rows = [(name, addresses[name], priority) for name, priority in priorities.items()]
    own = next(name for name, address in addresses.items() if address == me)
    return Hello(
        own * 40,
        tuple(NodeInfo(name * 40, "" if address == me else address.host, 7711, rank) for name, address, rank in rows),
    )


@pytest.mark.parametrize(
    ("text", "address", "shown"),
    [
        ("localhost", Address("localhost", 7711), "localhost:7711"),
        ("10.0.0.1:7712", Address("10.0.0.1", 7712), "10.0.0.1:7712"),
        ("[::1]:7712", Address("::1", 7712), "[::1]:7712"),
        ("[::1]", Address("::1", 7711), "[::1]:7711"),
        ("/run/disque.sock", Address("/run/disque.sock", 0), "/run/disque.sock"),
    ],
)
def test_addresses_are_parsed_and_formatted(text: str, address: Address, shown: str) -> None:
    assert parse_address(text) == address
    assert str(address) == shown


@pytest.mark.parametrize("text", ["", ":7711", "host:port", "host:0", "host:65536", "::1", "[::1", "[::1]x"])
def test_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid node address"):
        parse_address(text)


def test_first_node_is_chosen_at_random() -> None:
    first = {Nodes([A, B, C], random.Random(seed)).order()[0] for seed in range(50)}
    assert first == {A, B, C}


def test_node_in_use_stays_first_until_it_fails() -> None:
    nodes = Nodes([A, B, C], random.Random(1))
    nodes.connected(B)
    assert all(nodes.order()[0] == B for _ in range(20))
    nodes.failed(B)
    assert nodes.current is None
    assert all(nodes.order()[-1] == B for _ in range(20))


def test_better_priorities_come_first() -> None:
    nodes = Nodes([A], random.Random(1))
    nodes.learn(A, hello(A, a=1, b=10, c=5))
    assert nodes.order() == [A, C, B]


def test_configured_addresses_are_always_kept() -> None:
    nodes = Nodes([A, B], random.Random(1))
    nodes.learn(C, hello(C, c=1))
    assert set(nodes.order()) == {A, B, C}


def test_leaving_node_is_avoided_when_another_is_not_leaving() -> None:
    nodes = Nodes([A], random.Random(1))
    nodes.learn(A, hello(A, a=100))
    assert not nodes.should_avoid(A), "there is no other node"
    nodes.learn(A, hello(A, a=100, b=100))
    assert not nodes.should_avoid(A), "the other node is leaving, too"
    nodes.learn(A, hello(A, a=100, b=1))
    assert nodes.should_avoid(A)
    assert nodes.order()[0] == B


def test_node_that_replied_leaving_is_tried_last() -> None:
    nodes = Nodes([A, B], random.Random(1))
    nodes.connected(A)
    nodes.leaving(A)
    assert nodes.order() == [B, A]


def test_client_without_nodes_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Nodes([], random.Random(1))
