"""Clients with TLS learn the TLS ports of all nodes; other clients learn the other ports."""

from __future__ import annotations

from collections.abc import Callable

from compat.replay import Client
from disqued.testing.processes import form_cluster
from tls.nodes import TlsNode, ask


def ports(reply: bytes) -> list[int]:
    """The ports of the nodes in a reply to HELLO."""
    words = reply.split(b"\r\n")
    return sorted(int(words[at + 6]) for at, word in enumerate(words) if word == b"*4")


def test_hello_shows_the_ports_that_fit_the_connection(start: Callable[..., TlsNode]) -> None:
    both, other, only = start(name="both"), start(name="other"), start("--port", "0", name="only")
    for node in (other, only):
        assert both.ask(f"CLUSTER MEET 127.0.0.1 {node.port}") == "OK"
    with both.dial() as connection:
        both.wait_until(
            lambda: ports(ask(connection, b"HELLO")) == sorted(node.tls_port for node in (both, other, only)),
            "the TLS ports of all nodes are known",
        )
    with both.connect() as connection_without:
        assert ports(ask(connection_without, b"HELLO")) == sorted([0, both.port, other.port])


def test_tls_port_is_remembered_over_a_restart(start: Callable[..., TlsNode]) -> None:
    first, second = start(name="first"), start("--cluster-announce-tls-port", "4444", name="second")
    form_cluster([first, second])
    saved = first.directory / "nodes.conf"
    first.wait_until(lambda: " tls-port 4444" in saved.read_text(), "the port is saved")
    client = Client(first)
    assert client.call(b"CLUSTER", b"SAVECONFIG") != b""
    assert client.finish() == b""
