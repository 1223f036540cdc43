"""Certificates are replaced while the node runs."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable

import pytest

from compat.replay import Client
from compat.wire import Status
from disqued.testing.certificates import Authority
from disqued.testing.ports import free_port
from tls.nodes import TlsNode, ask, read_all, refuses, trusting

pytestmark = pytest.mark.slow

DAY_S = 86400


def refused(node: TlsNode) -> bool:
    return "the previous ones stay in use" in node.output


def test_new_connections_get_the_new_certificate_when_the_files_change(node: TlsNode) -> None:
    before = node.serial()
    with node.dial() as old:
        node.replace("other")
        node.wait_until(lambda: node.serial() != before, "the new certificate is in use")
        assert ask(old, b"PING") == b"+PONG\r\n"
    assert "TLS certificates read, new connections use them: expires_in_days=" in node.output


def test_a_changed_link_is_followed(node: TlsNode, authority: Authority) -> None:
    before = node.serial()
    secret = node.directory / "secret-2"
    secret.mkdir()
    for suffix in ("crt", "key"):
        shutil.copy(authority.directory / f"other.{suffix}", secret / f"node.{suffix}")
        link = node.directory / f"link.{suffix}"
        link.symlink_to(secret / f"node.{suffix}")
        link.replace(node.directory / f"node.{suffix}")
    node.wait_until(lambda: node.serial() != before, "the new certificate is in use")


def test_key_of_another_certificate_is_refused_and_the_pair_in_use_stays(node: TlsNode, authority: Authority) -> None:
    before = node.serial()
    shutil.copy(authority.directory / "other.key", node.directory / "node.key")
    node.wait_until(lambda: refused(node), "the pair is refused")
    assert "the key in node.key does not belong to the certificate in node.crt" in node.output
    assert node.serial() == before
    node.replace("other")
    node.wait_until(lambda: node.serial() != before, "the complete pair is in use")


@pytest.mark.parametrize("damage", ["gone", "empty", "garbage"])
def test_broken_certificate_file_is_refused(node: TlsNode, damage: str) -> None:
    before = node.serial()
    path = node.directory / "node.crt"
    if damage == "gone":
        path.unlink()
    else:
        path.write_text("" if damage == "empty" else "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    node.wait_until(lambda: refused(node), "the file is refused")
    assert node.serial() == before


def test_expired_certificates_are_refused(start: Callable[..., TlsNode], authority: Authority) -> None:
    authority.issue("late", days=0)
    expired_ca = Authority(authority.directory, "expired-ca", days=0)
    node = start(clients="optional")
    before = node.serial()
    node.replace("late")
    node.wait_until(lambda: "the certificate in node.crt is expired" in node.output, "the certificate is refused")
    node.replace("node")
    shutil.copy(expired_ca.certificate, node.directory / "ca.crt")
    node.wait_until(lambda: "all certificates in ca.crt (tls-ca-cert-file) are expired" in node.output, "it is refused")
    assert node.serial() == before


def test_authority_that_was_removed_is_no_longer_trusted(start: Callable[..., TlsNode], authority: Authority) -> None:
    node = start(clients="yes")
    new = Authority(authority.directory, "new-ca")
    with node.dial(trusting(authority, "client")) as connection:
        assert ask(connection, b"PING") == b"+PONG\r\n"
    shutil.copy(new.certificate, node.directory / "ca.crt")
    node.wait_until(lambda: "TLS certificates read" in node.output, "the file is read")
    assert refuses(node, trusting(authority, "client"))


def test_sighup_reads_the_files_again(node: TlsNode) -> None:
    assert node.ask("PING") == "PONG"  # a node that does not serve yet has just read them
    node.process.send_signal(signal.SIGHUP)
    node.wait_until(lambda: "TLS certificates read" in node.output, "the files are read")
    assert node.ask("PING") == "PONG"


def test_config_set_changes_the_certificate_or_says_why_not(node: TlsNode, authority: Authority) -> None:
    before = node.serial()
    pair = node.directory / "pair.pem"
    pair.write_bytes(b"".join((authority.directory / f"other.{suffix}").read_bytes() for suffix in ("crt", "key")))
    assert node.ask("CONFIG SET tls-cert-file pair.pem").startswith("ERR the key in node.key does not belong")
    assert (
        node.ask("CONFIG SET tls-cert-file gone.crt")
        == "ERR cannot read gone.crt (tls-cert-file): No such file or directory"
    )
    assert node.serial() == before
    shutil.copy(pair, node.directory / "node.crt.new")
    (node.directory / "node.crt.new").replace(node.directory / "node.crt")
    client = Client(node)
    assert client.call(b"CONFIG", b"SET", b"tls-key-file", b"") == Status(b"OK")
    assert client.finish() == b""
    assert node.serial() != before
    assert node.ask("CONFIG SET tls-cert-file pair.pem") == "OK"


def test_config_set_changes_what_clients_need(node: TlsNode) -> None:
    assert node.ask("CONFIG SET tls-ciphers nonsense").startswith("ERR tls-ciphers 'nonsense' names no cipher")
    assert node.ask("CONFIG SET tls-ciphers ECDHE+AESGCM") == "OK"
    assert node.ask("CONFIG SET tls-auth-clients yes") == "OK"
    assert refuses(node)


def test_expiry_is_in_info_and_metrics(start: Callable[..., TlsNode]) -> None:
    port = free_port()
    node = start("--http-port", str(port), "--http-tls", "yes")
    left_s = int(node.info("server")["tls_certificate_expires_in_seconds"])
    assert 29 * DAY_S < left_s <= 30 * DAY_S
    with node.dial(port=port) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        page = read_all(connection)
    assert b"\ndisque_tls_certificate_expiry_timestamp_seconds 1" in page
    assert b"\ndisque_tls_certificate_refused 0" in page
