"""nodes.conf: what is written is read back, what the original wrote is understood, mistakes are named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.core.view import ClusterView
from disqued.membership.nodesconf import Saved, decode, encode

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
def test_what_is_written_is_read_back(seed: bytes, port: int, ip: bytes, leaving: bool) -> None:
    view = ClusterView(seed.hex().encode(), port)
    view.ip = ip
    view.leaving = leaving
    assert decode(encode(view)) == Saved(view.node_id, leaving, ip, [])


@pytest.mark.parametrize(
    ("text", "leaving"),
    [
        (f"{SELF} :0 myself 0 0 connected\n", False),
        (f"{PEERS[0]}{SELF} 127.0.0.1:17711 myself,leaving 0 0 connected\n{PEERS[1]}", True),
        (f"\n  \nvars currentEpoch 0\n{SELF} [::1]:7711 MYSELF,Leaving,whatever 0 0 connected\n\n\n", True),
    ],
    ids=["fresh", "with peers", "odd"],
)
def test_files_of_the_original_are_understood(text: str, leaving: bool) -> None:
    saved = decode(text)
    assert (saved.node_id, saved.leaving) == (SELF.encode(), leaving)


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
def test_a_damaged_file_is_refused_with_its_line(text: str, error: str) -> None:
    with pytest.raises(ValueError, match=error.replace("?", r"\?")):
        decode(text)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        saved = decode(text)
    except ValueError:
        return
    assert len(saved.node_id) == 40
