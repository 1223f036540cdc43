"""Fixtures of the HTTP API."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from httpapi.nodes import ApiNode, OpenNode, running


@pytest.fixture
def open_node(tmp_path: Path) -> Iterator[OpenNode]:
    """Starts nodes with the given directives; they are stopped when the test ends."""
    with contextlib.ExitStack() as opened:

        def start(*arguments: str) -> ApiNode:
            directory = tmp_path / str(len(list(tmp_path.iterdir())))
            directory.mkdir()
            return opened.enter_context(running(directory, *arguments))

        yield start


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiNode]:
    """One node for all tests of a module, which use queues of their own."""
    with running(tmp_path_factory.mktemp("node")) as found:
        yield found
