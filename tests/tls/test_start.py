"""Directives about TLS that do not work are refused at start with what to do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from disqued.testing.certificates import Authority
from disqued.testing.ports import free_port
from server.refusing import run_server
from tls.nodes import PASSWORD

PAIR = ("--tls-cert-file", "node.crt", "--tls-key-file", "node.key")
LOCKED = ("--tls-cert-file", "node.crt", "--tls-key-file", "locked.key", "--tls-auth-clients", "no")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "tls-port needs a certificate: set tls-cert-file and tls-key-file"),
        (PAIR, "tls-auth-clients yes needs tls-ca-cert-file to verify the certificates of clients"),
        (("--tls-cert-file", "none.crt", "--tls-auth-clients", "no"), "cannot read none.crt (tls-cert-file)"),
        (("--tls-cert-file", "node.crt", "--tls-auth-clients", "no"), "node.crt and node.crt are not a certificate"),
        ((*PAIR, "--tls-auth-clients", "yes", "--tls-ca-cert-file", "node.key"), "has no certificates in PEM format"),
        ((*PAIR, "--tls-auth-clients", "no", "--tls-ciphers", "x"), "tls-ciphers 'x' names no cipher"),
        (LOCKED, "the key in locked.key is encrypted: set tls-key-file-pass"),
        ((*LOCKED, "--tls-key-file-pass", "bad-pass"), "tls-key-file-pass is not the password of the key in locked"),
    ],
)
def test_bad_directives_are_refused(
    tmp_path: Path, authority: Authority, arguments: tuple[str, ...], reason: str
) -> None:
    for suffix in ("crt", "key"):
        shutil.copy(authority.directory / f"node.{suffix}", tmp_path)
    shutil.copy(authority.lock("node", PASSWORD), tmp_path / "locked.key")
    outcome = run_server(tmp_path, "--port", str(free_port()), "--tls-port", str(free_port()), *arguments)
    assert outcome.status == 1
    assert "Can't use TLS: " in outcome.out
    assert reason in outcome.out
    assert "bad-pass" not in outcome.out, "a password is shown"


def test_port_that_is_in_use_by_the_node_itself_is_refused(tmp_path: Path, authority: Authority) -> None:
    for suffix in ("crt", "key"):
        shutil.copy(authority.directory / f"node.{suffix}", tmp_path)
    port = str(free_port())
    outcome = run_server(tmp_path, "--port", port, "--tls-port", port, *PAIR, "--tls-auth-clients", "no")
    assert outcome.status == 1
    assert f"Port {port} is already used by this node without TLS: change tls-port." in outcome.out


def test_shared_port_needs_a_port_of_the_node_alone(tmp_path: Path, authority: Authority) -> None:
    for suffix in ("crt", "key"):
        shutil.copy(authority.directory / f"node.{suffix}", tmp_path)
    one, two = str(free_port()), str(free_port())
    arguments = ("--port", one, *PAIR, "--tls-auth-clients", "no", "--shared-tls-port", two)
    outcome = run_server(tmp_path, *arguments)
    assert outcome.status == 1
    assert "shared-tls-port needs a tls-port, which belongs to this node alone: set tls-port." in outcome.out
    outcome = run_server(tmp_path, *arguments, "--tls-port", two)
    assert outcome.status == 1
    assert f"Port {two} is already used by this node: change shared-tls-port." in outcome.out
