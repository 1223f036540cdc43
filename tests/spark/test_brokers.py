"""The members of the cluster as the connector sees them, and the address of each."""

from __future__ import annotations

import pytest

from disqued.client import AuthenticationRequired, ClockError, ConnectionFailed, NoParent, ResponseError
from pyspark_disque.brokers import Brokers, is_retryable
from pyspark_disque.options import Options
from support.cluster import RealCluster


def members(*nodes: str, discover: bool = True) -> dict[str, str]:
    with Brokers(Options(nodes=nodes, discover=discover)) as brokers:
        return {member.id: member.address for member in brokers.members()}


def test_one_address_is_enough_to_discover_all_members(cluster: RealCluster) -> None:
    assert members(cluster.nodes[1].address) == {node.id: node.address for node in cluster.nodes}


def test_without_discovery_the_members_are_the_given_nodes_at_the_given_addresses(
    cluster: RealCluster,
) -> None:
    one, two, _ = cluster.nodes
    by_name = f"localhost:{two.port}"
    assert members(one.address, by_name, discover=False) == {one.id: one.address, two.id: by_name}


def test_unreachable_node_is_skipped(cluster: RealCluster) -> None:
    one = cluster.nodes[0]
    assert set(members("127.0.0.1:1", one.address)) == {node.id for node in cluster.nodes}
    assert members("127.0.0.1:1", one.address, discover=False) == {one.id: one.address}


def test_error_names_the_addresses_when_no_node_can_be_reached() -> None:
    with pytest.raises(ConnectionFailed, match=r"cannot reach any node of 127\.0\.0\.1:1: .*refused"):
        members("127.0.0.1:1")


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        (ConnectionFailed("away"), True),
        (ResponseError("NOREPL too few"), True),
        (ResponseError("NOQUORUM orders: 1 of 3 replicas reachable"), True),
        (NoParent("NOPARENT too few nodes know it"), True),
        (ClockError("CLOCK the clock of this node is ahead"), True),
        (ResponseError("ERR max number of clients reached"), True),
        (ResponseError("ERR syntax error"), False),
        (AuthenticationRequired("NOAUTH Authentication required."), False),
    ],
    ids=str,
)
def test_temporary_errors_are_retryable_and_permanent_ones_are_not(
    error: ConnectionFailed | ResponseError, *, retryable: bool
) -> None:
    assert is_retryable(error) is retryable
