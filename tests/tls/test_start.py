"""Directives about TLS that do not work are refused at start with what to do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from disqued.testing.certificates import Authority
from disqued.testing.ports import free_port
from server.refusing import run_server

PAIR = ("--tls-cert-file", "node.crt", "--tls-key-file", "node.key")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "tls-port needs a certificate: set tls-cert-file and tls-key-file"),
        (PAIR, "tls-auth-clients yes needs tls-ca-cert-file to verify the certificates of clients"),
        (("--tls-cert-file", "none.crt", "--tls-auth-clients", "no"), "cannot read none.crt (tls-cert-file)"),
        (("--tls-cert-file", "node.crt", "--tls-auth-clients", "no"), "node.crt and node.crt are not a certificate"),
        ((*PAIR, "--tls-auth-clients", "yes", "--tls-ca-cert-file", "node.key"), "has no certificates in PEM format"),
        ((*PAIR, "--tls-auth-clients", "no", "--tls-ciphers", "x"), "tls-ciphers 'x' names no cipher"),
        (
            ("--tls-cert-file", "node.crt", "--tls-key-file", "locked.key", "--tls-auth-clients", "no"),
            "not a certificate and its key without a passphrase",
        ),
    ],
)
def test_bad_directives_are_refused(
    tmp_path: Path, authority: Authority, arguments: tuple[str, ...], reason: str
) -> None:
    for suffix in ("crt", "key"):
        shutil.copy(authority.directory / f"node.{suffix}", tmp_path)
    (tmp_path / "locked.key").write_text(LOCKED_KEY)
    outcome = run_server(tmp_path, "--port", str(free_port()), "--tls-port", str(free_port()), *arguments)
    assert outcome.status == 1
    assert "Can't use TLS: " in outcome.out
    assert reason in outcome.out


def test_port_that_is_in_use_by_the_node_itself_is_refused(tmp_path: Path, authority: Authority) -> None:
    for suffix in ("crt", "key"):
        shutil.copy(authority.directory / f"node.{suffix}", tmp_path)
    port = str(free_port())
    outcome = run_server(tmp_path, "--port", port, "--tls-port", port, *PAIR, "--tls-auth-clients", "no")
    assert outcome.status == 1
    assert f"Port {port} is already used by this node without TLS: change tls-port." in outcome.out


LOCKED_KEY = """\
-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjb4UCGkCu06QICCAAw
DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEECFDSygOYlON4M3nwAgEvd8EgZA3
jRK3Z3jXiKW8YkjcUhhxOngE9aj227MOEvKrdwt9Ty9xEdmLGCL7q4YgrtfA26SG
cj1VIF2zd0nhI9xnMjS1M8P7WZGNu7WPmlsoN6vI29DiBPvf69Zw26TC8F23SEZj
kJl0R5TdU8Sj4a3Owz8X8PfDnVRt2QMhL0sbPNfsmzpokDL7IIwMPmz6AuS7eO4=
-----END ENCRYPTED PRIVATE KEY-----
"""
