"""Three nodes for all tests of a module, and connections of kombu to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from kombu import Connection

from disqued.client import Client
from disqued.testing.processes import ServerProcess, form_cluster


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ServerProcess]]:
    """A cluster of three nodes."""
    with ExitStack() as stack:
        directories: list[Path] = [tmp_path_factory.mktemp(f"node{number}") for number in range(3)]
        servers = [stack.enter_context(ServerProcess(directory)) for directory in directories]
        form_cluster(servers)
        yield servers


@pytest.fixture(scope="module")
def url(nodes: list[ServerProcess]) -> str:
    """The broker's URL."""
    return "disque://" + ",".join(f"127.0.0.1:{node.port}" for node in nodes)


@pytest.fixture
def connect(url: str) -> Iterator[Callable[..., Any]]:
    """Make connections of kombu, closed at the end of the test; arguments are transport options."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(Connection(url, transport_options=options))


@pytest.fixture
def broker(nodes: list[ServerProcess]) -> Iterator[Client]:
    """A client of the cluster, to look at what the transport did."""
    with Client([f"127.0.0.1:{node.port}" for node in nodes]) as client:
        yield client
