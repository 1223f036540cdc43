"""The HTTP port with TLS."""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Callable

import pytest

from disqued.server.httpport import MOST_CONNECTIONS
from disqued.testing.ports import free_port
from tls.nodes import TlsNode, read_all, trusting

LIVE = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def site(start: Callable[..., TlsNode]) -> TlsNode:
    """A node whose HTTP port is `http`; clients on the other port need certificates."""
    port = free_port()
    node = start("--http-port", str(port), "--http-tls", "yes", clients="yes")
    node.http = port  # type: ignore[attr-defined]
    return node


def get(node: TlsNode, request: bytes) -> bytes:
    with node.dial(port=node.http) as connection:  # type: ignore[attr-defined]
        connection.sendall(request)
        return read_all(connection)


def test_probes_metrics_and_console_work_without_a_certificate(site: TlsNode) -> None:
    for page in (b"/livez", b"/readyz", b"/metrics", b"/"):
        reply = get(site, b"GET %b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % page)
        assert reply.startswith(b"HTTP/1.1 200 "), page


def test_several_requests_use_one_connection(site: TlsNode) -> None:
    last = LIVE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    assert get(site, LIVE * 2 + last).count(b"HTTP/1.1 200 ") == 3


def test_refused_request_gets_the_reason(site: TlsNode) -> None:
    for request, status in ((b"GET / HTTP/1.1\r\nX: " + b"x" * 20000 + b"\r\n\r\n", b"431"), (b"no\r\n\r\n", b"400")):
        with site.dial(port=site.http) as connection:  # type: ignore[attr-defined]
            connection.sendall(request)
            assert connection.recv(1000).startswith(b"HTTP/1.1 %b " % status)


def test_clients_that_close_their_connections_write_nothing_into_the_log(site: TlsNode) -> None:
    with site.dial(port=site.http) as connection:  # type: ignore[attr-defined]
        connection.sendall(LIVE)
        assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
        connection.unwrap()
    assert get(site, LIVE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
    assert "eof_received" not in site.output


def test_handshakes_and_connections_take_no_descriptors_from_clients(start: Callable[..., TlsNode]) -> None:
    launcher = ("setpriv", "--bounding-set", "-sys_resource", "prlimit", "--nofile=110:110")
    port = free_port()
    node = start("--http-port", str(port), "--http-tls", "yes", launcher=launcher)
    node.wait_until(lambda: "Server started" in node.output, "it has logged how many clients it serves")
    possible = re.search(r"Only (\d+) clients instead of 10000", node.output)
    assert possible is not None
    with contextlib.ExitStack() as opened:
        for _ in range(MOST_CONNECTIONS):
            idle = opened.enter_context(node.dial(port=port))
            idle.sendall(LIVE)
            assert idle.recv(1000).startswith(b"HTTP/1.1 200 ")
        silent = [opened.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(40)]
        assert [ended(connection) for connection in silent[: 40 - MOST_CONNECTIONS]] == [b""] * (40 - MOST_CONNECTIONS)
        clients = [opened.enter_context(node.connect()) for _ in range(int(possible[1]))]
        for client in clients:
            client.sendall(b"PING\r\n")
        assert [client.recv(100) for client in clients] == [b"+PONG\r\n"] * len(clients)
        with node.dial(port=port) as probe:
            probe.sendall(LIVE)
            assert probe.recv(1000).startswith(b"HTTP/1.1 200 ")


def test_one_address_cannot_end_the_handshakes_of_others(site: TlsNode) -> None:
    http = ("127.0.0.1", site.http)  # type: ignore[attr-defined]
    with contextlib.ExitStack() as opened:
        slow = opened.enter_context(socket.create_connection(http, 10, source_address=("127.0.0.2", 0)))
        flood = [opened.enter_context(socket.create_connection(http, 10)) for _ in range(3 * MOST_CONNECTIONS)]
        assert [ended(connection) for connection in flood[: 2 * MOST_CONNECTIONS]] == [b""] * 2 * MOST_CONNECTIONS
        encrypted = opened.enter_context(trusting(site.authority).wrap_socket(slow, server_hostname="localhost"))
        encrypted.sendall(LIVE)
        assert encrypted.recv(1000).startswith(b"HTTP/1.1 200 ")


def ended(connection: socket.socket) -> bytes:
    """What arrives until the node ends a connection, which it may also reset."""
    connection.settimeout(10)
    with contextlib.suppress(ConnectionResetError):
        return connection.recv(100)
    return b""
