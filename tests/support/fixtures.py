"""Fixtures that tests of several rooms use: nodes in virtual time and their clients. A room may define its own."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

import pytest

from disqued.testing.cluster import Cluster
from disqued.testing.local import LocalClient, LocalNode
from disqued.testing.processes import ServerProcess

SETTLED_S = 10.0
"""After this time, nodes that have met have nothing more to tell each other."""


class Connected(Protocol):
    """A client of a server process."""

    socket: socket.socket


ClientType = TypeVar("ClientType", bound=Connected)


@pytest.fixture
def local() -> LocalNode:
    """A node in virtual time."""
    return LocalNode()


@pytest.fixture
def client(local: LocalNode) -> LocalClient:
    """A client of `local`."""
    return local.client()


@pytest.fixture
def cluster() -> Cluster:
    """Three nodes in virtual time that have met; no frame is recorded yet."""
    return settled(3)


@pytest.fixture
def pair() -> Cluster:
    """Two nodes in virtual time that have met; no frame is recorded yet."""
    return settled(2)


def settled(count: int) -> Cluster:
    """A cluster of nodes that have nothing more to tell each other."""
    cluster = Cluster(count)
    cluster.run(seconds=SETTLED_S)
    cluster.forget_sent()
    return cluster


def clients_of(make: Callable[[ServerProcess], ClientType]) -> Iterator[Callable[[ServerProcess], ClientType]]:
    """The body of a fixture that makes clients of a server, and closes them when the test ends."""
    with contextlib.ExitStack() as opened:

        def client(server: ServerProcess) -> ClientType:
            new = make(server)
            opened.callback(new.socket.close)
            return new

        yield client
