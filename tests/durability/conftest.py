"""Nodes that are killed hundreds of times come from a nursery, one for each module of tests."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from support.durable import DurableNode
from support.nursery import Nursery

Make: TypeAlias = Callable[..., DurableNode]
POLICIES: Final = ("always", "everysec", "no")
LONG: Final = [pytest.mark.slow, pytest.mark.timeout(900)]


def made_by(nursery: Nursery, directory: Path) -> Iterator[Make]:
    """Makes nodes that keep an append only file: a name, a policy and other arguments; they are killed in the end."""
    with contextlib.ExitStack() as made:

        def node(name: str, policy: str, *arguments: str) -> DurableNode:
            new = DurableNode(nursery, directory / name, "--appendonly", "yes", "--appendfsync", policy, *arguments)
            made.callback(new.kill)
            return new

        yield node


@pytest.fixture
def configured(nursery: Nursery, tmp_path: Path) -> Iterator[Callable[[str], DurableNode]]:
    """Makes a node with the configuration file `disque.conf`; it is killed in the end."""
    with contextlib.ExitStack() as made:

        def node(config: str) -> DurableNode:
            new = DurableNode(nursery, tmp_path / "node", "disque.conf")
            (new.directory / "disque.conf").write_text(config)
            made.callback(new.kill)
            return new

        yield node


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as started:
        yield started


@pytest.fixture(scope="module")
def spoiled_nursery() -> Iterator[Nursery]:
    with Nursery(spoiled=True) as started:
        yield started


@pytest.fixture
def make(nursery: Nursery, tmp_path: Path) -> Iterator[Make]:
    yield from made_by(nursery, tmp_path)


@pytest.fixture
def make_spoiled(spoiled_nursery: Nursery, tmp_path: Path) -> Iterator[Make]:
    """Nodes with a disk that `support.spoiled` spoils."""
    yield from made_by(spoiled_nursery, tmp_path)
