"""Fixtures of the tests of the command line: a node for each module, and `disque` configured for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cli.running import Disque
from disqued.testing.processes import ServerProcess


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One node for all tests of a module; each test uses its own queues."""
    with ServerProcess(tmp_path_factory.mktemp("node")) as process:
        yield process


@pytest.fixture
def disque(node: ServerProcess) -> Disque:
    """`disque`, configured for the node by the environment."""
    return Disque(node.port)
