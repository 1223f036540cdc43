"""Nodes that are killed hundreds of times are started by a fork server, one for each test module."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from support.durable import DurableNode
from support.forkserver import ForkServer

Make: TypeAlias = Callable[..., DurableNode]
POLICIES: Final = ("always", "everysec", "no")
LONG: Final = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(900)]


def nodes_of(fork_server: ForkServer, directory: Path) -> Iterator[Make]:
    """A function that makes nodes with an append-only file, from a name, a policy and directives; killed at the end."""
    with contextlib.ExitStack() as made:

        def node(name: str, policy: str, *arguments: str) -> DurableNode:
            new = DurableNode(fork_server, directory / name, "--appendonly", "yes", "--appendfsync", policy, *arguments)
            made.callback(new.kill)
            return new

        yield node


@pytest.fixture
def configured(fork_server: ForkServer, tmp_path: Path) -> Iterator[Callable[[str], DurableNode]]:
    """A function that makes a node with the configuration file `disque.conf`; it is killed at the end."""
    with contextlib.ExitStack() as made:

        def node(config: str) -> DurableNode:
            new = DurableNode(fork_server, tmp_path / "node", "disque.conf")
            (new.directory / "disque.conf").write_text(config)
            made.callback(new.kill)
            return new

        yield node


@pytest.fixture(scope="module")
def fork_server() -> Iterator[ForkServer]:
    with ForkServer() as started:
        yield started


@pytest.fixture(scope="module")
def faulty_fork_server() -> Iterator[ForkServer]:
    with ForkServer(faulty_disk=True) as started:
        yield started


@pytest.fixture
def make(fork_server: ForkServer, tmp_path: Path) -> Iterator[Make]:
    yield from nodes_of(fork_server, tmp_path)


@pytest.fixture
def make_faulty(faulty_fork_server: ForkServer, tmp_path: Path) -> Iterator[Make]:
    """Like `make`, with disks on which `support.faultydisk` can inject faults."""
    yield from nodes_of(faulty_fork_server, tmp_path)
