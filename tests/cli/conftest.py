"""What the tests of the command line share: a broker for each module, and `disque` pointed at it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cli.running import Disque
from disqued.testing.processes import ServerProcess


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One broker for all tests of a module; each uses queues of its own."""
    with ServerProcess(tmp_path_factory.mktemp("node")) as process:
        yield process


@pytest.fixture
def disque(node: ServerProcess) -> Disque:
    """`disque`, pointed at the node by the environment."""
    return Disque(node.port)
