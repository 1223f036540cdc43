"""Clients on the port with TLS."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Callable

import pytest

from disqued.testing.certificates import Authority
from disqued.testing.ports import free_port
from tls.nodes import TlsNode, ask, read_all, refuses, trusting

BIG = 8 << 20


def test_commands_work_with_tls_and_without(node: TlsNode) -> None:
    with node.dial() as connection:
        assert connection.version() == "TLSv1.3"
        assert ask(connection, b"PING") == b"+PONG\r\n"
    assert node.ask("PING") == "PONG"


def test_a_node_can_serve_tls_only(start: Callable[..., TlsNode]) -> None:
    port = free_port()
    node = start("--port", "0", "--http-port", str(port))
    with node.dial() as connection:
        assert ask(connection, b"PING") == b"+PONG\r\n"


def test_client_without_a_certificate_is_refused(start: Callable[..., TlsNode], authority: Authority) -> None:
    node = start(clients="yes")
    with node.dial(trusting(authority, "client")) as connection:
        assert ask(connection, b"PING") == b"+PONG\r\n"
    assert refuses(node)


def test_client_with_a_certificate_of_another_authority_is_refused(
    start: Callable[..., TlsNode], authority: Authority
) -> None:
    other = Authority(authority.directory, "other-ca")
    other.issue("unknown")
    for clients in ("yes", "optional"):
        node = start(clients=clients, name=clients)
        assert refuses(node, trusting(authority, "unknown"))


def test_optional_certificates_are_not_required(start: Callable[..., TlsNode], authority: Authority) -> None:
    node = start(clients="optional")
    for name in ("", "client"):
        with node.dial(trusting(authority, name)) as connection:
            assert ask(connection, b"PING") == b"+PONG\r\n"


def test_old_version_of_tls_is_refused(start: Callable[..., TlsNode], authority: Authority) -> None:
    node = start("--tls-min-version", "1.3")
    old = trusting(authority)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    assert refuses(node, old)


def test_a_large_job_goes_through_in_both_directions(node: TlsNode) -> None:
    with node.dial() as connection:
        connection.sendall(b"*4\r\n$6\r\nADDJOB\r\n$1\r\nq\r\n$%d\r\n%b\r\n$1\r\n0\r\n" % (BIG, b"x" * BIG))
        assert connection.recv(100).startswith(b"+D-")
        connection.sendall(b"GETJOB FROM q\r\n")
        got = b""
        while len(got) < BIG:
            got += connection.recv(1 << 20)


def test_replies_arrive_when_the_client_has_closed_its_side(node: TlsNode) -> None:
    received, to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = trusting(node.authority).wrap_bio(received, to_send, server_hostname="localhost")
    with socket.create_connection(("127.0.0.1", node.tls_port), timeout=10) as connection:
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                connection.sendall(to_send.read())
                received.write(connection.recv(1 << 16))
        tls.write(b"PING\r\n" * 3)
        with pytest.raises(ssl.SSLWantReadError):
            tls.unwrap()  # it adds close_notify, then waits for that of the node
        connection.sendall(to_send.read())  # so the requests and close_notify arrive together
        received.write(read_all(connection))
    assert tls.read() == b"+PONG\r\n" * 3
    assert "returning true from eof_received" not in node.output


def test_unread_replies_are_counted_and_limited(start: Callable[..., TlsNode]) -> None:
    node = start("--client-output-buffer-limit", "normal", "2mb", "0", "0")
    with node.dial() as connection:
        connection.sendall(b"*4\r\n$6\r\nADDJOB\r\n$1\r\nq\r\n$%d\r\n%b\r\n$1\r\n0\r\n" % (BIG, b"x" * BIG))
        job = connection.recv(100)[1:].strip()
        connection.sendall(b"SHOW %b\r\n" % job * 8)  # and none of the replies is read
        node.wait_until(lambda: "overcoming of output buffer limits" in node.output, "the client is disconnected")


def test_connection_without_a_handshake_takes_no_place_of_a_client(start: Callable[..., TlsNode]) -> None:
    node = start("--maxclients", "4")
    silent = [socket.create_connection(("127.0.0.1", node.tls_port)) for _ in range(20)]
    with node.dial() as connection:
        assert ask(connection, b"PING") == b"+PONG\r\n"
    for other in silent:
        other.close()


def test_failed_handshakes_are_counted(start: Callable[..., TlsNode]) -> None:
    port = free_port()
    node = start("--http-port", str(port), "--loglevel", "verbose")
    with socket.create_connection(("127.0.0.1", node.tls_port)) as connection:
        connection.sendall(b"PING\r\n" * 100)
        connection.settimeout(10)
        with contextlib.suppress(ConnectionError):
            read_all(connection)
    node.wait_until(lambda: "TLS handshake failed: 127.0.0.1: " in node.output, "the failure is logged")
    with socket.create_connection(("127.0.0.1", port)) as http:
        http.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert b"disque_tls_handshakes_failed_total 1" in read_all(http)


@pytest.mark.parametrize(("clients", "name", "user"), [("yes", "client", "client"), ("optional", "", "default")])
def test_a_verified_certificate_names_the_user(
    start: Callable[..., TlsNode], authority: Authority, clients: str, name: str, user: str
) -> None:
    node = start("--tls-auth-clients-user", "CN", clients=clients)
    with node.dial(trusting(authority, name)) as connection:
        ask(connection, b"ACL SETUSER client on +acl")
    with node.dial(trusting(authority, name)) as connection:
        assert user.encode() in ask(connection, b"ACL WHOAMI")
    with node.dial(trusting(authority, "other" if name else "")) as connection:
        assert b"default" in ask(connection, b"ACL WHOAMI")
