"""The HTTP port with TLS."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from disqued.testing.ports import free_port
from tls.nodes import TlsNode, read_all


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
    ask = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = ask.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    assert get(site, ask * 2 + last).count(b"HTTP/1.1 200 ") == 3


def test_refused_request_gets_the_reason(site: TlsNode) -> None:
    for request, status in ((b"GET / HTTP/1.1\r\nX: " + b"x" * 20000 + b"\r\n\r\n", b"431"), (b"no\r\n\r\n", b"400")):
        with site.dial(port=site.http) as connection:  # type: ignore[attr-defined]
            connection.sendall(request)
            assert connection.recv(1000).startswith(b"HTTP/1.1 %b " % status)
