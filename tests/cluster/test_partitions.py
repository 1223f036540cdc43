"""Clusters of real processes whose wires are cut: halves, single nodes, one direction only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.wires import WiredCluster, Wires


@pytest.fixture
def wires() -> Iterator[Wires]:
    """Wires that are whole."""
    with Wires() as all_wires:
        yield all_wires


@pytest.fixture
def cluster(tmp_path: Path, wires: Wires) -> Iterator[WiredCluster]:
    """Three nodes that reach each other by wires only."""
    with WiredCluster(tmp_path, wires, 3) as three:
        yield three


def test_halves_miss_each_other_and_make_up(cluster: WiredCluster, wires: Wires) -> None:
    one, two, three = cluster.nodes
    ids = [node.id for node in cluster.nodes]
    wires.halve([one], [two, three])
    cluster.wait_until(
        lambda: "fail" in two.view()[ids[0]] and "fail" in three.view()[ids[0]], "the majority misses one"
    )
    cluster.wait_until(lambda: all("fail?" in one.view()[other] for other in ids[1:]), "one misses the others")
    wires.mend()
    cluster.wait_whole()
    assert [node.id for node in cluster.nodes] == ids
