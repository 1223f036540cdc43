"""Fixtures of the tests of TLS: one authority, and a node on a port with TLS."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from disqued.testing.certificates import Authority
from disqued.testing.ports import free_port
from tls.nodes import PASSWORD, TlsNode


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority that everybody trusts, with the certificates `node`, `other` and `client`."""
    made = Authority(tmp_path_factory.mktemp("authority"))
    for name in ("node", "other", "client"):
        made.issue(name)
    return made


@pytest.fixture
def start(tmp_path: Path, authority: Authority) -> Iterator[Callable[..., TlsNode]]:
    """A function that starts a node with a certificate of its own, on ports with and without TLS."""
    with ExitStack() as stack:

        def node(
            *arguments: str,
            name: str = "n1",
            clients: str = "no",
            certificate: str = "node",
            locked: bool = False,
            launcher: Sequence[str] = (),
        ) -> TlsNode:
            directory = tmp_path / name
            directory.mkdir()
            for suffix in ("crt", "key"):
                shutil.copy(authority.directory / f"{certificate}.{suffix}", directory / f"node.{suffix}")
            if locked:
                shutil.copy(authority.lock(certificate, PASSWORD), directory / "node.key")
            shutil.copy(authority.certificate, directory / "ca.crt")
            made = TlsNode(directory, authority, free_port(), *arguments, clients=clients, launcher=launcher)
            return stack.enter_context(made)

        yield node


@pytest.fixture
def node(start: Callable[..., TlsNode]) -> TlsNode:
    return start()
