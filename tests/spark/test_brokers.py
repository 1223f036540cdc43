"""Who is in the cluster, as the connector sees it, and where each node is reached."""

from __future__ import annotations

import pytest

from disqued.client import AuthenticationRequired, ConnectionFailed, ResponseError
from pyspark_disque.brokers import Brokers, is_passing
from pyspark_disque.options import Options
from support.cluster import RealCluster


def members(*nodes: str, discover: bool = True) -> dict[str, str]:
    with Brokers(Options(nodes=nodes, discover=discover)) as brokers:
        return {member.id: member.address for member in brokers.members()}


def test_one_address_is_enough_to_know_all_members(cluster: RealCluster) -> None:
    assert members(cluster.nodes[1].address) == {node.id: node.address for node in cluster.nodes}


def test_without_discovery_there_are_those_that_were_named_and_they_are_where_they_were_named(
    cluster: RealCluster,
) -> None:
    one, two, _ = cluster.nodes
    by_name = f"localhost:{two.port}"
    assert members(one.address, by_name, discover=False) == {one.id: one.address, two.id: by_name}


def test_a_node_that_can_not_be_reached_is_passed_over(cluster: RealCluster) -> None:
    one = cluster.nodes[0]
    assert set(members("127.0.0.1:1", one.address)) == {node.id for node in cluster.nodes}
    assert members("127.0.0.1:1", one.address, discover=False) == {one.id: one.address}


def test_nobody_there_is_said_with_what_was_tried() -> None:
    with pytest.raises(ConnectionFailed, match=r"no node of 127\.0\.0\.1:1 can be reached: .*refused"):
        members("127.0.0.1:1")


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (ConnectionFailed("away"), True),
        (ResponseError("NOREPL too few"), True),
        (ResponseError("ERR max number of clients reached"), True),
        (ResponseError("ERR syntax error"), False),
        (AuthenticationRequired("NOAUTH Authentication required."), False),
    ],
    ids=str,
)
def test_what_may_pass_is_told_from_what_will_not(error: ConnectionFailed | ResponseError, *, passes: bool) -> None:
    assert is_passing(error) is passes
