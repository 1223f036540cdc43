"""`disque repair` with a cluster of real processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.running import Disque
from disqued.cli.views.repair import COLUMNS
from support.cluster import RealCluster

GUIDE = Path(__file__).parents[2] / "docs" / "howto" / "command-line.md"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    with RealCluster(tmp_path_factory.mktemp("cluster"), 3) as nodes:
        yield nodes


def test_all_nodes_are_listed_and_done_connected_node_first(cluster: RealCluster) -> None:
    one, *_ = cluster.nodes
    disque = Disque(one.port)
    assert disque("repair", "--now").returncode in {0, 1}
    cluster.wait_until(lambda: disque("repair").returncode == 0)
    rows = json.loads(disque.ok("repair", "--json"))
    assert rows[0]["address"] == f"127.0.0.1:{one.port}"
    assert {row["address"] for row in rows} == {f"127.0.0.1:{node.port}" for node in cluster.nodes}
    assert {(row["done"], row["enabled"], row["under_replicated"]) for row in rows} == {("yes", "yes", 0)}


def test_columns_are_those_of_the_guide() -> None:
    names = ", ".join(f"`{column.name}`" for column in COLUMNS)
    assert f"Columns: {names}." in GUIDE.read_text().replace("\n", " ")


def test_a_node_that_does_not_answer_fails_the_command(cluster: RealCluster) -> None:
    one, _, three = cluster.nodes
    three.kill()
    disque = Disque(one.port)
    done = disque("repair")
    assert done.returncode == 1
    assert done.stderr.decode() == f"127.0.0.1:{three.port} does not answer; the copies of its jobs are not known.\n"
    with disque.in_terminal("repair") as terminal:
        terminal.wait_for("UNDER-REPLICATED")
