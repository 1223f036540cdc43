"""Nodes of real clusters that find each other, also after they return at other addresses."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from disqued.testing.ports import free_port
from support.cluster import RealCluster

pytestmark = pytest.mark.slow

AGAIN_S: Final = 30.0
"""The guarantee: a cluster forms again within this time."""


def end_all(cluster: RealCluster) -> None:
    """Kill all nodes at once, as when their machines are moved; their files stay."""
    for node in cluster.nodes:
        node.kill()


def start_all(cluster: RealCluster) -> None:
    """Start all nodes at once."""
    for node in cluster.nodes:
        node.start()
    for node in cluster.nodes:
        node.server.wait_ready()


def wait_again(cluster: RealCluster, ids: list[str]) -> None:
    """Wait until the same nodes form the cluster again."""
    cluster.wait_until(
        lambda: all(node.sees(len(ids) - 1) for node in cluster.nodes), "the cluster forms again", AGAIN_S
    )
    assert [node.id for node in cluster.nodes] == ids


@pytest.mark.parametrize("count", [3, 7])
def test_chained_meets_make_one_cluster_with_the_same_view(tmp_path: Path, count: int) -> None:
    with RealCluster(tmp_path, count, meet=False) as cluster:
        cluster.meet(chain=True)
        ids = {node.id for node in cluster.nodes}
        assert [set(node.view()) for node in cluster.nodes] == [ids] * count
        assert [len(node.call("HELLO")[2:]) for node in cluster.nodes] == [count] * count


def test_seven_nodes_restarted_at_once_form_the_cluster_again(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 7) as cluster:
        ids = [node.id for node in cluster.nodes]
        end_all(cluster)
        start_all(cluster)
        wait_again(cluster, ids)


def test_cluster_restarted_on_other_ports_forms_again_through_its_seeds(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 3) as cluster:
        ids = [node.id for node in cluster.nodes]
        end_all(cluster)
        for node in cluster.nodes:
            node.port = free_port()
        seeds = [f"localhost:{node.port}" for node in cluster.nodes]
        for node in cluster.nodes:
            node.arguments += ["--cluster-seeds", *seeds]
        start_all(cluster)
        wait_again(cluster, ids)


def test_cluster_restarted_at_other_addresses_forms_again_through_one_seed(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 3, meet=False) as cluster:
        end_all(cluster)
        port = cluster.nodes[0].port
        for number, node in enumerate(cluster.nodes):
            node.host, node.port = f"127.0.2.{number + 1}", port
            node.arguments += ["--cluster-seeds", f"127.0.3.1:{port}"]
        start_all(cluster)
        for node in cluster.nodes[1:]:
            cluster.nodes[0].call("CLUSTER", "MEET", node.host, port)
        cluster.wait_whole()
        ids = [node.id for node in cluster.nodes]
        end_all(cluster)
        for number, node in enumerate(cluster.nodes):
            node.host = f"127.0.3.{number + 1}"
        start_all(cluster)
        wait_again(cluster, ids)


def test_host_names_lead_to_nodes_whose_addresses_changed(tmp_path: Path) -> None:
    """The name resolves to 127.0.0.1; the nodes have met at another address, which disappears."""
    with RealCluster(tmp_path, 0) as cluster:
        for _ in range(3):
            cluster.start_node("--cluster-announce-hostname", "localhost", host="127.0.0.2").server.wait_ready()
        for node in cluster.nodes:
            node.kill()
            node.arguments += ["--bind", "127.0.0.2", "127.0.0.1"]
        start_all(cluster)
        cluster.meet()
        ids = [node.id for node in cluster.nodes]
        cluster.wait_until(
            lambda: all([entry[1] for entry in node.call("HELLO")[2:]] == [b"localhost"] * 3 for node in cluster.nodes),
            "all know the names",
        )
        end_all(cluster)
        for node in cluster.nodes:
            node.host = "127.0.0.1"
            node.arguments = node.arguments[:-3]
        start_all(cluster)
        wait_again(cluster, ids)


def test_node_that_lost_its_disk_joins_as_a_new_node(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 3) as cluster:
        one, two, three = cluster.nodes
        lost = three.id
        three.kill()
        (three.directory / "nodes.conf").unlink()
        three.restart()
        assert three.id != lost
        one.call("CLUSTER", "MEET", three.host, three.port)
        cluster.wait_until(
            lambda: all(node.view()[lost] & {"fail", "fail?", "noaddr"} for node in (one, two)), "the old one is missed"
        )
        for node in cluster.nodes:
            if lost in node.view():
                node.call("CLUSTER", "FORGET", lost)
        cluster.wait_whole()
        assert lost not in one.view()
