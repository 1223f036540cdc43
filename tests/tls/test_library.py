"""The Python client, blocking and asyncio, with TLS."""

from __future__ import annotations

import ssl
from collections.abc import Callable

import pytest

from client.conftest import Connect
from client.conftest import connect as connect  # noqa: PLC0414 - the fixture
from disqued.client import AuthenticationRequired, Backoff, ConnectionFailed, tls_context
from disqued.testing.certificates import Authority
from disqued.testing.processes import form_cluster
from tls.nodes import TlsNode, trusting

ONCE = Backoff(attempts=1)


def url(node: TlsNode, who: str = "") -> str:
    return f"disques://{who}localhost:{node.tls_port}"


def test_jobs_go_through(connect: Connect, node: TlsNode, authority: Authority) -> None:
    client = connect([url(node)], tls=trusting(authority))
    for number in range(3):
        client.add("q", b"x" * number * 1_000_000)
        [job] = client.get("q", timeout_ms=1000)
        assert len(job.body) == number * 1_000_000
        assert client.ack(job.id) == 1


def test_connection_is_used_again(connect: Connect, node: TlsNode, authority: Authority) -> None:
    client = connect([url(node)], tls=trusting(authority))
    for _ in range(5):
        client.ping()
    assert node.info("stats")["total_connections_received"] in {"2", "3"}, "that of the client, and those of the test"


def test_closed_connection_is_replaced(connect: Connect, node: TlsNode, authority: Authority) -> None:
    client = connect([url(node)], tls=trusting(authority))
    client.ping()
    assert node.ask("CLIENT KILL TYPE normal").isdigit()
    client.ping()


def test_node_that_is_not_trusted_is_refused(connect: Connect, node: TlsNode) -> None:
    with pytest.raises(ConnectionFailed, match="certificate verify failed"):
        connect([url(node)], backoff=ONCE).ping()
    connect([url(node)], tls=tls_context(insecure=True), backoff=ONCE).ping()


def test_certificate_for_another_name_is_refused(
    connect: Connect, start: Callable[..., TlsNode], authority: Authority
) -> None:
    authority.issue("elsewhere", names="DNS:elsewhere.example.com")
    node = start()
    before = node.serial()
    node.replace("elsewhere")
    node.wait_until(lambda: _serial(node) != before, "the certificate is in use")
    with pytest.raises(ConnectionFailed, match="localhost"):
        connect([url(node)], tls=trusting(authority), backoff=ONCE).ping()


def _serial(node: TlsNode) -> str:
    context = trusting(node.authority)
    context.check_hostname = False
    with node.dial(context) as connection:
        return str((connection.getpeercert() or {})["serialNumber"])


def test_name_in_the_certificate_can_differ_from_the_address(
    connect: Connect, start: Callable[..., TlsNode], authority: Authority
) -> None:
    authority.issue("tunnel", names="DNS:node.example.com")
    node = start(certificate="tunnel")
    connect([url(node)], tls=trusting(authority), tls_server_name="node.example.com").ping()
    with pytest.raises(ConnectionFailed, match=r"other\.example\.com"):
        connect([url(node)], tls=trusting(authority), tls_server_name="other.example.com", backoff=ONCE).ping()
    with pytest.raises(ConnectionFailed, match="localhost"):
        connect([url(node)], tls=trusting(authority), backoff=ONCE).ping()


def test_client_certificate_is_sent(connect: Connect, start: Callable[..., TlsNode], authority: Authority) -> None:
    node = start(clients="yes")
    pair = [str(authority.directory / f"client.{suffix}") for suffix in ("crt", "key")]
    settings = tls_context(cafile=str(authority.certificate), certfile=pair[0], keyfile=pair[1])
    connect([url(node)], tls=settings).ping()
    with pytest.raises(ConnectionFailed):
        connect([url(node)], tls=trusting(authority), backoff=ONCE).ping()
    said = f"cafile={authority.certificate}&certfile={pair[0]}&keyfile={pair[1]}&server_name=localhost"
    connect([f"{url(node)}/?{said}"]).ping()


def test_password_of_the_url_is_sent(connect: Connect, start: Callable[..., TlsNode], authority: Authority) -> None:
    node = start("--requirepass", "a b")
    for who in (":a%20b@", "default:a%20b@"):
        connect([url(node, who)], tls=trusting(authority)).ping()
    with pytest.raises(AuthenticationRequired):
        connect([url(node)], tls=trusting(authority)).ping()


def test_client_moves_to_the_tls_port_of_another_node(
    connect: Connect, start: Callable[..., TlsNode], authority: Authority
) -> None:
    nodes = [start(name=f"n{number}") for number in range(2)]
    form_cluster(nodes)
    nodes[0].wait_until(
        lambda: all(" tls-port " in (node.directory / "nodes.conf").read_text() for node in nodes),
        "the nodes know each other's TLS port",
    )
    client = connect([url(nodes[0])], tls=trusting(authority))
    client.ping()
    nodes[0].kill()
    client.ping()
    assert client.node == f"127.0.0.1:{nodes[1].tls_port}"


def test_context_verifies_unless_told_otherwise() -> None:
    context = tls_context()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
