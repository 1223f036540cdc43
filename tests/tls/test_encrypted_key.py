"""The key of a node is encrypted with a password; programs without the password do not ask for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.running import MAIN
from disqued.cli.exits import Exit
from disqued.client import tls_context
from disqued.testing.certificates import Authority
from disqued.testing.ports import free_port
from disqued.testing.processes import SERVER
from tls.nodes import PASSWORD, TlsNode, ask

ON_A_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"


@pytest.fixture
def node(start: Callable[..., TlsNode]) -> TlsNode:
    return start("--tls-key-file-pass", PASSWORD, locked=True)


def refusals(node: TlsNode) -> int:
    return node.output.count("the previous ones stay in use")


def test_node_decrypts_its_key(node: TlsNode) -> None:
    with node.dial() as connection:
        assert ask(connection, b"PING") == b"+PONG\r\n"


def test_encrypted_key_is_renewed(node: TlsNode, authority: Authority) -> None:
    before = node.serial()
    node.replace("other", key=authority.lock("other", PASSWORD))
    node.wait_until(lambda: node.serial() != before, "the new certificate is in use")


def test_key_with_another_password_is_refused_until_the_password_is_set(node: TlsNode, authority: Authority) -> None:
    before = node.serial()
    assert node.ask("CONFIG SET tls-key-file-pass changed-pass").startswith("ERR tls-key-file-pass is not the password")
    node.replace("other", key=authority.lock("other", "changed-pass"))
    reason = "tls-key-file-pass is not the password of the key in node.key"
    node.wait_until(lambda: reason in node.output, "the pair is refused")
    assert node.serial() == before
    assert node.ask("CONFIG SET tls-key-file-pass changed-pass") == "OK"
    assert node.serial() != before
    assert "changed-pass" not in node.output, "the log shows the password"


def test_encrypted_key_is_refused_at_renewal_if_there_is_no_password(
    start: Callable[..., TlsNode], authority: Authority
) -> None:
    node = start()
    before = node.serial()
    node.replace("other", key=authority.lock("other", PASSWORD))
    reason = "the key in node.key is encrypted: set tls-key-file-pass"
    node.wait_until(lambda: reason in node.output, "the pair is refused")
    assert node.serial() == before


def test_client_refuses_an_encrypted_key(authority: Authority) -> None:
    with pytest.raises(OSError, match=r"the key in .*client\.locked is encrypted: only keys without a password can be"):
        tls_context(certfile=str(authority.directory / "client.crt"), keyfile=str(authority.lock("client", PASSWORD)))


def test_no_program_asks_for_the_password_on_a_terminal(node: TlsNode, authority: Authority, tmp_path: Path) -> None:
    certificate, key = authority.directory / "client.crt", authority.lock("client", PASSWORD)
    client = (sys.executable, *MAIN, "-h", "localhost", "-p", str(node.tls_port), "--tls", "--insecure")
    server = ("--port", "0", "--tls-port", str(free_port()), "--tls-auth-clients", "no", "--tls-cert-file")
    for command, status in (
        ([*client, "--cert", str(certificate), "--key", str(key), "ping"], Exit.CONNECTION),
        ([*SERVER, *server, str(certificate), "--tls-key-file", str(key)], 1),
    ):
        done = subprocess.run(
            [sys.executable, "-c", ON_A_TERMINAL, *command],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=30,
            check=False,
        )
        assert done.returncode == status, done.stdout
        assert b"is encrypted" in done.stdout
