"""Protected mode: a node that anybody can use serves only its own machine, unless somebody decided otherwise."""

from __future__ import annotations

import pytest

from disqued.config import load
from disqued.errors import Protected
from disqued.testing.local import LocalClient, LocalNode, no_include


def answer(directives: str, address: bytes = b"192.0.2.7:555", *, unix_socket: bool = False) -> bytes:
    """What a new client gets for a PING."""
    local = LocalNode(load(directives, (), no_include))
    client = local.client(address, unix_socket=unix_socket)
    client.send("PING")
    return client.received


def test_other_machines_are_told_what_to_do() -> None:
    assert answer("") == Protected().encode()
    assert b"Set requirepass, or bind to the addresses that clients may use, or set protected-mode no" in answer("")


@pytest.mark.parametrize("address", [b"127.0.0.1:5", b"127.8.9.1:5", b"[::1]:5", b"[::ffff:127.0.0.1]:5"])
def test_its_own_machine_is_served(address: bytes) -> None:
    assert answer("", address) == b"+PONG\r\n"


@pytest.mark.parametrize("address", [b"[::127.0.0.1]:5", b"[2001:db8::1]:5", b"128.0.0.1:5", b"?:0"])
def test_similar_addresses_are_other_machines(address: bytes) -> None:
    assert answer("", address).startswith(b"-DENIED ")


def test_a_unix_socket_is_served() -> None:
    assert answer("", b"/run/disque.sock:0", unix_socket=True) == b"+PONG\r\n"


@pytest.mark.parametrize("directive", ["bind 0.0.0.0", "bind 192.0.2.1", "protected-mode no"])
def test_who_decided_where_to_listen_is_not_protected(directive: str) -> None:
    assert answer(directive) == b"+PONG\r\n"


@pytest.mark.parametrize("directive", ["requirepass secret", "user default off", "user default on >secret +@all ~*"])
def test_a_node_with_a_password_needs_no_protection(directive: str) -> None:
    assert answer(directive) == b"-NOAUTH Authentication required.\r\n"


def test_a_node_with_users_is_protected_while_no_login_is_needed() -> None:
    assert answer("user mail on >secret +@all").startswith(b"-DENIED ")


def test_protection_ends_with_the_directive(local: LocalNode, client: LocalClient) -> None:
    assert client.raw("CONFIG", "SET", "protected-mode", "no") == b"+OK\r\n"
    assert local.client(b"192.0.2.7:555").raw("PING") == b"+PONG\r\n"
    assert client.raw("CONFIG", "SET", "protected-mode", "yes") == b"+OK\r\n"
    assert local.client(b"192.0.2.7:556").closed


@pytest.mark.parametrize(
    "head", ["POST / HTTP/1.1\r\nContent-Type: text/plain\r\n\r\n", "GET / HTTP/1.1\r\nHost: localhost:7711\r\n\r\n"]
)
def test_a_page_in_a_browser_on_its_own_machine_cannot_run_commands(local: LocalNode, head: str) -> None:
    browser, client = local.client(), local.client()
    browser.send_bytes(head.encode() + b"ADDJOB mail body 0\r\n")
    assert browser.received.endswith(b"-ERR this port does not speak HTTP\r\n")
    assert browser.closed
    browser.send_bytes(b"ADDJOB mail body 0\r\n")
    assert client.call("QLEN", "mail") == 0
