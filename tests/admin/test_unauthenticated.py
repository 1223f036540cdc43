"""Clients that have not authenticated take little, and do not keep others out."""

from __future__ import annotations

import pytest

from disqued.core.clients.session import Session
from disqued.core.runtime.clientlimits import UNAUTHENTICATED_BYTES
from disqued.errors import TooManyUnauthenticated, Unauthenticated
from disqued.node.requests import PARTS_PER_CHECK
from disqued.testing.local import LocalClient, LocalNode


@pytest.fixture
def guarded(local: LocalNode, client: LocalClient) -> LocalNode:
    """A node with a password; its first client is authenticated."""
    assert client.call("CONFIG", "SET", "requirepass", "secret") == b"OK"
    assert client.call("AUTH", "secret") == b"OK"
    return local


def test_a_client_that_does_not_authenticate_gets_little_output(guarded: LocalNode) -> None:
    one = guarded.client()
    one.window = 0
    one.send_bytes(b"x" * 16_000 + b"\r\n")
    one.send_bytes((b"x" * 100 + b"\r\n") * 10_000)
    assert one.session.closing
    assert one.session.output_bytes() < UNAUTHENTICATED_BYTES + PARTS_PER_CHECK * 170
    one.read(100_000)
    assert one.received.endswith(
        b"it caused too many replies without authentication, send AUTH right after connecting\r\n"
    )
    assert one.closed


def test_a_client_that_reads_nothing_is_disconnected_nevertheless(guarded: LocalNode) -> None:
    one = guarded.client()
    one.window = 0
    one.send_bytes((b"x" * 100 + b"\r\n") * 10_000)
    assert one.session.closing
    guarded.run(seconds=62)
    assert one.closed


def test_a_client_that_authenticates_is_not_limited(guarded: LocalNode) -> None:
    client = guarded.client()
    client.send_bytes(b"AUTH secret\r\n" + (b"x" * 100 + b"\r\n") * 10_000)
    assert len(client.received) > 1_000_000
    guarded.run(seconds=120)
    assert client.raw("PING") == b"+PONG\r\n"


def test_a_client_has_a_minute_to_authenticate(guarded: LocalNode, client: LocalClient) -> None:
    slow, silent = guarded.client(), guarded.client()
    guarded.run(seconds=58)
    assert not silent.closed
    assert slow.call("AUTH", "secret") == b"OK"
    guarded.run(seconds=4)
    assert (silent.closed, slow.closed, client.closed) == (True, False, False)
    assert silent.received == Unauthenticated("did not authenticate within 60 seconds").encode()
    assert client.call("AUTH", "wrong") != b"OK"
    guarded.run(seconds=62)
    assert client.closed, "a wrong password ends an earlier authentication"


def test_without_a_password_nobody_is_disconnected(local: LocalNode, client: LocalClient) -> None:
    local.run(seconds=120)
    assert client.call("PING") == b"PONG"


def test_those_who_do_not_authenticate_cannot_keep_others_out(guarded: LocalNode, client: LocalClient) -> None:
    client.call("CONFIG", "SET", "maxclients", 100)
    unknown = [guarded.client() for _ in range(200)]
    assert sum(not one.closed for one in unknown) == 25
    assert unknown[0].received == (
        b"-ERR max number of clients reached: too many clients have not authenticated, "
        b"send AUTH right after connecting\r\n"
    )
    assert guarded.client().call("AUTH", "secret") == b"OK"
    assert not client.closed


def test_one_address_has_fewer_places_than_all(guarded: LocalNode, client: LocalClient) -> None:
    client.call("CONFIG", "SET", "maxclients", 160)
    sessions = [Session(b"[2001:db8::%x]:4000" % number, guarded.now_ms) for number in range(20)]
    other = Session(b"10.0.0.1:4000", guarded.now_ms)
    guarded.node.connected(other)
    for session in sessions:
        guarded.node.connected(session)
    waiting = list(guarded.node.state.unauthenticated.values())
    assert other in waiting
    assert [session for session in waiting if session is not other] == sessions[-10:]
    assert sessions[0].out == [TooManyUnauthenticated("clients of this address").encode()]


def test_a_client_that_does_not_read_why_it_is_disconnected_takes_no_longer(
    guarded: LocalNode, client: LocalClient
) -> None:
    client.call("CONFIG", "SET", "maxclients", 100)
    slow, deaf = guarded.client(), guarded.client()
    slow.window = deaf.window = 0
    deaf.send("PING")
    for _ in range(25):
        guarded.client()
    assert (slow.closed, deaf.closed) == (False, True)
    guarded.run(seconds=2)
    assert slow.closed


def test_input_of_clients_that_do_not_authenticate_goes_first_when_memory_is_short(
    guarded: LocalNode, client: LocalClient
) -> None:
    client.call("CONFIG", "SET", "maxmemory", "4mb")
    unknown = [guarded.client() for _ in range(100)]
    for one in unknown:
        one.send_bytes(b"*2\r\n$4\r\nAUTH\r\n$16384\r\n" + b"x" * 16_000)
        one.send_bytes(b"x" * 300)
    used = guarded.node.state.lifecycle.memory
    used.used_bytes += 2 << 20
    guarded.run(seconds=1)
    assert all(one.closed for one in unknown)
    assert used.input_bytes == 0
    used.used_bytes -= 2 << 20
    assert not client.closed
