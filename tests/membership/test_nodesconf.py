"""nodes.conf: the node reads what it wrote, reads files of the original, and reports errors by line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.bus import kinds
from disqued.config import Config
from disqued.core.cluster.peer import Peer
from disqued.core.cluster.view import ClusterView
from disqued.membership.nodesconf import Saved, decode, encode, restore
from disqued.node import Node
from disqued.testing.host import FakeHost

VECTORS = sorted((Path(__file__).parents[1] / "vectors" / "nodes-conf").glob("*.conf"))

SELF = "5ee9cdf1b0eda85ab6948353dd20d80e0baa0cea"
PEERS = (
    "657185389a9e9f670609820695414bf776313e15 127.0.0.1:17713 noflags 0 1795232113451 connected\n",
    "1095d61cdd317a161979b1af1eebeb26bf339aa7 :0 fail?,noaddr 1795231527852 1795231527350 disconnected\n",
)


def test_a_fresh_node_is_written_as_the_original_writes_it() -> None:
    assert encode(ClusterView(SELF.encode(), 0)) == f"{SELF} :0 myself 0 0 connected\n"


def test_a_leaving_node_is_written_as_the_original_writes_it() -> None:
    view = ClusterView(SELF.encode(), 17711)
    view.ip = b"127.0.0.1"
    view.leaving = True
    assert encode(view) == f"{SELF} 127.0.0.1:17711 myself,leaving 0 0 connected\n"


@given(
    st.binary(min_size=20, max_size=20),
    st.integers(0, 65535),
    st.sampled_from([b"", b"10.0.0.1", b"::1"]),
    st.booleans(),
)
def test_a_written_file_is_read_back(seed: bytes, port: int, ip: bytes, leaving: bool) -> None:
    view = ClusterView(seed.hex().encode(), port)
    view.ip = ip
    view.leaving = leaving
    assert decode(encode(view)) == Saved(view.node_id, leaving, ip)


@pytest.mark.parametrize(
    ("text", "leaving"),
    [
        (f"{SELF} :0 myself 0 0 connected\n", False),
        (f"{PEERS[0]}{SELF} 127.0.0.1:17711 myself,leaving 0 0 connected\n{PEERS[1]}", True),
        (f"\n  \nvars currentEpoch 0\n{SELF} [::1]:7711 MYSELF,Leaving,whatever 0 0 connected\n\n\n", True),
    ],
    ids=["fresh", "with peers", "odd"],
)
def test_files_of_the_original_are_read(text: str, leaving: bool) -> None:
    saved = decode(text)
    assert (saved.node_id, saved.leaving) == (SELF.encode(), leaving)


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_a_file_of_the_original_is_loaded_and_written_as_it_was(path: Path) -> None:
    text = path.read_text()
    saved = decode(text)
    state = Node(Config(), FakeHost(now_ms=1234), saved.node_id, 1234).state
    restore(state, saved)
    own_port = re.search(r":(\d+) myself", text)
    state.view.port = int(own_port[1]) if own_port else 0
    assert sorted(timeless(encode(state.view))) == sorted(timeless(text))


def timeless(text: str) -> list[list[str]]:
    """The words of each line without the link state; a time is `0` or `some`."""
    lines = [line.split() for line in text.splitlines()]
    return [[*words[:3], *("0" if word == "0" else "some" for word in words[3:5])] for words in lines]


def test_added_fields_are_written_in_vars_lines_that_the_original_ignores() -> None:
    state = Node(Config(), FakeHost(), SELF.encode(), 0).state
    named = Peer(b"a" * 40, b"10.0.0.2", 7711, 0, 0, 9000)
    named.host = b"two.example"
    lost = Peer(b"b" * 40, b"", 7711, kinds.NODE_NOADDR, 0)
    lost.host = b"three.example"
    for peer in (named, lost, Peer(b"c" * 40, b"10.0.0.4", 7711, kinds.NODE_LEAVING, 0)):
        state.view.peers[peer.id] = peer
    text = encode(state.view)
    extra = [line for line in text.splitlines() if len(line.split()) != 6]
    assert extra == [f"vars node {'a' * 40} host two.example bus-port 9000", f"vars node {'b' * 40} host three.example"]
    assert {len(line.split()) % 2 for line in extra} == {1}, "the original reads pairs"

    again = Node(Config(), FakeHost(), SELF.encode(), 0).state
    restore(again, decode(text))
    assert {(peer.id, peer.ip, peer.bus_port, peer.host, peer.flags) for peer in again.view.peers.values()} == {
        (peer.id, peer.ip, peer.bus_port, peer.host, peer.flags) for peer in state.view.peers.values()
    }
    assert [peer.id for peer in again.view.reachable] == [b"a" * 40]


@pytest.mark.parametrize(
    "line",
    [
        "vars",
        "vars node",
        f"vars node {'d' * 40} host unknown.example",
        f"vars node {PEERS[0][:40]} host",
        f"vars node {PEERS[0][:40]} host not_@_name bus-port x",
        f"vars node {PEERS[0][:40]} bus-port 99999 colour red",
        "vars currentEpoch 0 lastVoteEpoch 0",
    ],
)
def test_unusable_vars_lines_are_ignored(line: str) -> None:
    plain = f"{SELF} :0 myself 0 0 connected\n{PEERS[0]}"
    assert decode(f"{line}\n{plain}") == decode(plain)


@pytest.mark.parametrize("address", ["nonsense:7711", "10.0.0.1:0", "10.0.0.1:99999", "10.0.0.1:x", ":7711"])
def test_node_with_an_unusable_address_is_restored_without_one(address: str) -> None:
    saved = decode(f"{SELF} :0 myself 0 0 connected\n{'a' * 40} {address} noflags 0 0 connected\n")
    state = Node(Config(), FakeHost(), saved.node_id, 0).state
    restore(state, saved)
    assert [peer.flags for peer in state.view.peers.values()] == [kinds.NODE_NOADDR]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "no line has the flag 'myself'"),
        (PEERS[0], "no line has the flag 'myself'"),
        (f"{SELF} :0 myself 0 0\n", "line 1: expected 6 words for a node, found 5"),
        (f"\n{SELF[:39]} :0 myself 0 0 connected\n", f"line 2: '{SELF[:39]}' is no node ID"),
        (f"{SELF.upper()} :0 myself 0 0 connected\n", "is no node ID"),
        (f"{SELF} 127.0.0.1 myself 0 0 connected\n", "line 1: '127.0.0.1' is no address: ip:port is expected"),
    ],
)
def test_error_of_a_damaged_file_names_the_line(text: str, error: str) -> None:
    with pytest.raises(ValueError, match=error.replace("?", r"\?")):
        decode(text)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        saved = decode(text)
    except ValueError:
        return
    assert len(saved.node_id) == 40
