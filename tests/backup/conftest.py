"""Clusters of real nodes that are backed up and restored."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest

from disqued.backup.main import main
from disqued.testing.ports import LOOPBACK
from support.durable import DurableNode
from support.forkserver import ForkServer

MakeCluster: TypeAlias = Callable[[str, int], list[DurableNode]]


@pytest.fixture(scope="module")
def fork_server() -> Iterator[ForkServer]:
    with ForkServer() as started:
        yield started


@pytest.fixture
def nodes_of(fork_server: ForkServer, tmp_path: Path) -> Iterator[MakeCluster]:
    """A function that makes the nodes of a cluster, which are not started."""
    with contextlib.ExitStack() as made:

        def nodes(name: str, count: int) -> list[DurableNode]:
            directories = [tmp_path / f"{name}-{number}" for number in range(count)]
            words = ("--appendonly", "yes", "--cluster-node-timeout", "1000")
            new = [DurableNode(fork_server, directory, *words) for directory in directories]
            for node in new:
                made.callback(node.kill)
            return new

        yield nodes


def wait_whole(nodes: list[DurableNode]) -> None:
    """Wait until all nodes serve clients and are connected to each other."""
    for node in nodes:
        node.wait_ready()
    for node in nodes:
        node.until(partial(node.sees, len(nodes) - 1), "the cluster is complete")


def start(nodes: list[DurableNode]) -> list[DurableNode]:
    """Start the nodes of a new cluster, and let them meet."""
    for node in nodes:
        node.start()
    for node in nodes[1:]:
        nodes[0].call("CLUSTER", "MEET", LOOPBACK, node.port)
    wait_whole(nodes)
    return nodes


def backup(*words: str | int | Path) -> None:
    """Run `disque-backup`, which must succeed."""
    assert main([str(word) for word in words]) == 0


def create(node: DurableNode, store: Path | str, *words: str) -> None:
    """Back up the cluster of a node."""
    backup("create", store, "-h", LOOPBACK, "-p", node.port, *words)


def restore(store: Path | str, nodes: list[DurableNode], *words: str) -> list[DurableNode]:
    """Restore the latest backup to nodes that were not started, and start them: they know each other."""
    addresses = ",".join(f"{LOOPBACK}:{node.port}" for node in nodes)
    for number, node in enumerate(nodes):
        backup("restore", store, "latest", "--nodes", addresses, "--node", number, "--into", node.directory, *words)
    for node in nodes:
        node.begin()
    wait_whole(nodes)
    return nodes
