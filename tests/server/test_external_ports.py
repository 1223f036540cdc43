"""The ports for clients outside of the network of the nodes, with real nodes and the client."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from disqued.client import Client
from disqued.testing.ports import LOOPBACK, free_port
from server.refusing import run_server
from support.cluster import RealCluster


def ports(address: str) -> set[int]:
    """Return the ports of all nodes as the client learns them from one of them."""
    with Client([address]) as client:
        return {node.port for node in client.hello().nodes}


def test_client_outside_reaches_all_nodes_at_their_external_addresses(tmp_path: Path) -> None:
    outside = [free_port(), free_port()]

    def knows_both(address: str) -> bool:
        return ports(address) == set(outside)

    with RealCluster(tmp_path, 0) as cluster:
        for port in outside:
            announced = ("--cluster-announce-external", f"{LOOPBACK}:{port}")
            cluster.start_node("--external-port", str(port), *announced).server.wait_ready()
        cluster.meet()
        inside = {node.port for node in cluster.nodes}
        for port in outside:
            address = f"{LOOPBACK}:{port}"
            cluster.wait_until(partial(knows_both, address), f"{address} knows both addresses")
        assert ports(cluster.nodes[0].address) == ports(cluster.nodes[1].address) == inside
        with Client([f"{LOOPBACK}:{outside[0]}"]) as client:
            client.add("mail", b"hello", replicate=2)
            [job] = client.get("mail")
            assert job.body == b"hello"


def test_port_with_tls_needs_a_certificate(tmp_path: Path) -> None:
    done = run_server(tmp_path, "--port", str(free_port()), "--external-tls-port", str(free_port()))
    assert done.status == 1
    assert "external-tls-port needs a tls-port: set it too." in done.out


@pytest.mark.parametrize("used", ["port", "bus"])
def test_port_that_is_used_already_is_refused(tmp_path: Path, used: str) -> None:
    port = free_port()
    taken = port if used == "port" else port + 10000
    done = run_server(tmp_path, "--port", str(port), "--external-port", str(taken))
    assert done.status == 1
    assert f"Can't listen on TCP port {taken}" in done.out
