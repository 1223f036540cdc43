"""`disque` with TLS."""

from __future__ import annotations

from collections.abc import Callable

from cli.running import Disque
from disqued.cli.exits import Exit
from disqued.resp.writer import request
from disqued.testing.certificates import Authority
from disqued.testing.ports import free_port
from tls.nodes import TlsNode


def test_commands_views_and_modes_work(node: TlsNode, authority: Authority) -> None:
    disque = Disque(node.tls_port)
    tls = ("-h", "localhost", "--tls", "--cacert", str(authority.certificate))
    assert disque.ok(*tls, "ping") == "PONG\n"
    assert disque.ok(*tls, "queues").startswith("queue\t")
    assert disque.ok(*tls, "bench", "-n", "50", "-c", "2").splitlines()[1].startswith("add\t50\t")
    many = b"".join(request([b"ADDJOB", b"q", b"x" * 1000, b"0"]) for _ in range(200))
    assert "errors: 0, replies: 200\n" in disque.ok(*tls, "--pipe", stdin=many)


def test_url_and_environment_switch_tls_on(node: TlsNode, authority: Authority) -> None:
    disque = Disque(node.tls_port)
    ca = str(authority.certificate)
    assert disque.ok("-u", f"disques://localhost:{node.tls_port}", "--cacert", ca, "ping") == "PONG\n"
    done = disque("ping", DISQUE_TLS="yes", DISQUE_CACERT=ca, DISQUE_HOST="localhost")
    assert (done.returncode, done.stdout) == (Exit.OK, b"PONG\n")


def test_options_of_tls_without_tls_are_refused(node: TlsNode, authority: Authority) -> None:
    disque = Disque(node.port)
    for option in (("--cacert", str(authority.certificate)), ("--insecure",), ("--sni", "localhost")):
        done = disque(*option, "ping")
        assert done.returncode == Exit.USAGE
        assert f"{option[0]} requires --tls or a disques:// URL".encode() in done.stderr


def test_certificate_that_is_not_trusted_is_refused(node: TlsNode) -> None:
    disque = Disque(node.tls_port)
    done = disque("-h", "localhost", "--tls", "ping")
    assert done.returncode == Exit.CONNECTION
    assert b"unable to get local issuer certificate" in done.stderr
    assert disque.ok("-h", "localhost", "--tls", "--insecure", "ping") == "PONG\n"


def test_name_in_the_certificate_can_differ_from_the_host(start: Callable[..., TlsNode], authority: Authority) -> None:
    authority.issue("tunnel", names="DNS:node.example.com")
    disque = Disque(start(certificate="tunnel").tls_port)
    tls = ("-h", "localhost", "--tls", "--cacert", str(authority.certificate))
    assert disque.ok(*tls, "--sni", "node.example.com", "ping") == "PONG\n"
    assert disque.ok(*tls, "--sni", "node.example.com", "queues").startswith("queue\t")
    assert disque(*tls, "ping", DISQUE_SNI="node.example.com").stdout == b"PONG\n"
    assert disque(*tls, "ping").returncode == Exit.CONNECTION


def test_client_certificate_is_sent(start: Callable[..., TlsNode], authority: Authority) -> None:
    node = start(clients="yes")
    pair = ("--cert", str(authority.directory / "client.crt"), "--key", str(authority.directory / "client.key"))
    tls = ("-h", "localhost", "--tls", "--cacert", str(authority.certificate))
    assert Disque(node.tls_port).ok(*tls, *pair, "ping") == "PONG\n"


def test_console_address_is_https(start: Callable[..., TlsNode], authority: Authority) -> None:
    port = free_port()
    node = start("--http-port", str(port), "--http-tls", "yes")
    tls = ("-h", "localhost", "--tls", "--cacert", str(authority.certificate))
    assert Disque(node.tls_port).ok(*tls, "console") == f"https://localhost:{port}/\n"
