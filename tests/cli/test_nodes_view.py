"""`disque nodes` with a cluster of real processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cli.running import Disque
from support.cluster import RealCluster

FIELDS = [
    "id",
    "address",
    "state",
    "link",
    "jobs",
    "queues",
    "clients",
    "blocked_clients",
    "used_memory_bytes",
    "uptime_s",
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    with RealCluster(tmp_path_factory.mktemp("cluster"), 3) as nodes:
        yield nodes


def rows(disque: Disque) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(disque.ok("nodes", "--json"))
    return found


def test_nodes_are_listed_with_statistics_connected_node_first(cluster: RealCluster) -> None:
    one, two, _ = cluster.nodes
    two.call("ADDJOB", "mail", "body", 0, "REPLICATE", 1)
    found = rows(Disque(one.port))
    assert [list(row) for row in found] == [FIELDS] * 3
    assert found[0]["address"] == f"127.0.0.1:{one.port}"
    assert {row["address"]: row["jobs"] for row in found} == {
        f"127.0.0.1:{node.port}": int(node is two) for node in cluster.nodes
    }
    assert {(row["state"], row["link"]) for row in found} == {("ok", "connected")}


def test_leaving_and_failed_nodes_have_different_states(cluster: RealCluster) -> None:
    one, two, three = cluster.nodes
    two.call("CLUSTER", "LEAVING", "yes")
    three.kill()
    disque = Disque(one.port)

    def seen() -> dict[str, tuple[str, bool]]:
        return {row["address"]: (row["state"], row["jobs"] is not None) for row in rows(disque)}

    expected = {f"127.0.0.1:{two.port}": ("leaving", True), f"127.0.0.1:{three.port}": ("fail", False)}
    cluster.wait_until(lambda: expected.items() <= seen().items())
    with disque.in_terminal("nodes") as terminal:
        terminal.wait_for("disconnected")
