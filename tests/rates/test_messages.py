"""TOKENASK and TOKENS on the wire: malformed, outdated and unexpected ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.bus import kinds
from disqued.bus.extension import NOBODY, extension
from disqued.core.cluster.rendezvous import ranked
from disqued.rates.counters import TOKENS_REFUSED
from disqued.rates.payload import (
    MOST,
    Ask,
    MalformedError,
    Told,
    pack_ask,
    pack_told,
    unpack_ask,
    unpack_told,
)
from disqued.rates.room import rates_of
from disqued.testing.local import LocalNode
from membership.stories import ScriptedNode

NUMBERS = st.integers(0, MOST)


@given(st.binary(min_size=1, max_size=1024), st.integers(0, (1 << 63) - 1), st.lists(NUMBERS, min_size=8, max_size=8))
def test_a_question_survives_the_wire(queue: bytes, asked_ms: int, numbers: list[int]) -> None:
    ask = Ask(queue, asked_ms, *numbers)
    assert unpack_ask(pack_ask(ask)) == ask


@given(st.binary(max_size=80))
def test_any_bytes_are_a_message_or_malformed(payload: bytes) -> None:
    for unpack in (unpack_ask, unpack_told):
        try:
            unpack(payload)
        except MalformedError:
            continue


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        pack_told(Told(b"", 1, 0, 1, 1, 1, report=False)),
        pack_told(Told(b"q" * 1025, 1, 0, 1, 1, 1, report=False)),
        pack_told(Told(b"q", 1, 0, 1, 1, 4, report=False)),
        pack_told(Told(b"q", 1, 0, 1, 1, 1, report=False))[:25] + b"\2q",
    ],
)
def test_malformed_tokens_are_refused(payload: bytes) -> None:
    with pytest.raises(MalformedError):
        unpack_told(payload)


class Scripted:
    """A node with a limited queue and one peer that speaks as the test says, for a queue whose home is one of them."""

    def __init__(self, *, home_is_peer: bool) -> None:
        self.local = LocalNode()
        features = self.local.node.state.features
        said = extension(features, 17711, NOBODY, b"12345678")
        self.peer = ScriptedNode(self.local, b"10.0.0.9", extension=said)
        self.peer.join()
        self.client = self.local.client()
        self.local.run(seconds=1)
        ids = [self.local.node.state.view.node_id, self.peer.id]
        home = self.peer.id if home_is_peer else ids[0]
        self.queue = next(f"q{n}" for n in range(100) if ranked(b"q%d" % n, ids)[0] == home)
        self.client.call("QCONF", self.queue, "SET", "rate", "1/h", "burst", 2)
        for _ in range(5):
            self.client.add(self.queue, "body", "REPLICATE", 1)

    def tell(self, kind: int, payload: bytes) -> None:
        self.peer.deliver(self.peer.link, self.peer.writer.other(kind, payload))

    def grant(self, asked_ms: int, number: int, tokens: int) -> None:
        """Send TOKENS for the queue."""
        told = Told(self.queue.encode(), asked_ms, 0, number, tokens, 1, report=False)
        self.tell(kinds.TOKENS, pack_told(told))

    def taken(self) -> int:
        return len(self.client.take(self.queue, count=5))

    def sent(self, kind: int) -> int:
        return int(self.local.node.state.traffic[kind].sent.value)


def test_tokens_of_the_home_are_used_once_and_only_while_they_are_valid() -> None:
    node = Scripted(home_is_peer=True)
    assert node.taken() == 0
    node.local.run(milliseconds=50)
    assert node.sent(kinds.TOKENASK) == 1
    now_ms = node.local.now_ms
    node.grant(now_ms - 50, 1, 2)
    node.grant(now_ms - 50, 1, 2)
    assert node.taken() == 2
    node.grant(now_ms - 2000, 2, 2)
    assert node.taken() == 0


def test_tokens_of_another_node_than_the_home_are_ignored() -> None:
    node = Scripted(home_is_peer=False)
    node.local.run(seconds=20)
    before = node.taken()
    assert before <= 2
    node.grant(node.local.now_ms, 1, 5)
    assert node.taken() == 0


def test_malformed_messages_are_counted_and_harmless() -> None:
    node = Scripted(home_is_peer=False)
    for payload in (b"", b"\0" * 17, b"\xff" * 40):
        node.tell(kinds.TOKENS, payload)
    node.tell(kinds.TOKENASK, b"\0" * 44)
    assert node.local.node.state.counters.value(TOKENS_REFUSED) == 4
    name = node.queue.encode()
    node.tell(kinds.TOKENASK, pack_ask(Ask(name, (1 << 63) - 1, MOST, MOST, MOST, MOST, MOST, MOST, MOST, 5)))
    node.tell(kinds.TOKENASK, pack_ask(Ask(b"unlimited", 1, 0, 5, 0, 0, 0, 0, 0, 0)))
    assert node.client.call("PING") == b"PONG"
    assert len(rates_of(node.local.node.state).buckets) == 1


def test_a_claim_is_answered_only_to_the_home() -> None:
    for home_is_peer in (True, False):
        node = Scripted(home_is_peer=home_is_peer)
        told = Told(node.queue.encode(), 0, 0, 0, 0, 0, report=True)
        node.tell(kinds.TOKENS, pack_told(told))
        assert node.sent(kinds.TOKENASK) == home_is_peer
        unknown = Told(b"elsewhere" if home_is_peer else b"x", 0, 0, 0, 0, 0, report=True)
        node.tell(kinds.TOKENS, pack_told(unknown))
        assert node.client.call("PING") == b"PONG"
