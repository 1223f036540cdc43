"""Clients with TLS learn the TLS ports of all nodes; other clients learn the other ports."""

from __future__ import annotations

from collections.abc import Callable

from disqued.testing.cluster import Cluster
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


def test_tls_port_is_remembered_over_a_restart() -> None:
    cluster = Cluster(2)
    first, second = cluster.members
    second.admin.call("CONFIG", "SET", "cluster-announce-tls-port", 4444)
    cluster.until(lambda: " tls-port 4444" in first.host.nodes_text)
    second.crash()
    first.restart()
    assert first.node.state.view.peers[second.id].tls_port == 4444
