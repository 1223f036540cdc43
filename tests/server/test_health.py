"""The answers to probes, of nodes in virtual time."""

from __future__ import annotations

import pytest

from disqued.config import Config
from disqued.core.host import disk
from disqued.node import Node
from disqued.server.health import DEFAULT_TIMEOUT_S, timeout_s, why_not_ready, why_not_safe
from disqued.testing.cluster import Cluster
from disqued.testing.local import NODE_ID, LocalNode
from support.logging_node import logging_node


def test_a_node_alone_is_ready_and_safe_to_stop() -> None:
    node = LocalNode().node
    assert (why_not_ready(node), why_not_safe(node.state)) == ("", "")


def test_a_node_that_could_not_load_is_not_ready() -> None:
    local = LocalNode()
    local.host.disk.fail(disk.OPEN)
    config = Config()
    config.assign("appendonly", True)
    node = Node(config, local.host, NODE_ID, local.now_ms)
    node.start(local.now_ms)
    assert why_not_ready(node) == "this node could not load its jobs"


def test_a_node_whose_disk_fails_is_not_ready_and_says_why() -> None:
    local = logging_node()
    local.host.disk.fail()
    local.client().send("ADDJOB", "mail", "body", 0)
    local.run(seconds=1)
    assert why_not_ready(local.node).startswith("MISCONF Errors writing to the AOF file: Input/output error")
    local.host.disk.repair()
    local.run(seconds=2)
    assert why_not_ready(local.node) == ""


def test_a_node_that_pauses_its_clients_is_not_ready() -> None:
    local = LocalNode()
    local.client().call("CLIENT", "PAUSE", 1000)
    paused = "all clients are paused (CLIENT PAUSE); CLIENT UNPAUSE ends the pause"
    assert why_not_ready(local.node) == paused
    local.run(seconds=1)
    assert why_not_ready(local.node) == ""


def test_a_node_that_ends_is_not_ready() -> None:
    local = LocalNode()
    assert local.node.end(local.now_ms)
    assert why_not_ready(local.node) == "this node is shutting down"


def test_a_node_may_be_stopped_while_all_others_answer_and_stay() -> None:
    cluster = Cluster(3)
    one, two, three = cluster.members
    assert why_not_safe(one.node.state) == ""

    two.crash()
    gone = f"node {two.id.decode()} ({two.ip.decode()}:7711) does not answer"
    cluster.until(lambda: why_not_safe(one.node.state) == gone)
    two.restart()
    cluster.until(lambda: why_not_safe(one.node.state) == "")

    three.pause()
    cluster.until(lambda: why_not_safe(one.node.state).startswith(f"node {three.id.decode()}"))
    three.resume()
    cluster.until(lambda: why_not_safe(one.node.state) == "")

    two.admin.call("CLUSTER", "LEAVING", "yes")
    cluster.until(lambda: why_not_safe(one.node.state).endswith("is leaving the cluster"))
    two.admin.call("CLUSTER", "LEAVING", "no")
    cluster.until(lambda: why_not_safe(one.node.state) == "")


def test_a_node_may_be_stopped_when_lost_copies_were_made_again() -> None:
    cluster = Cluster(3)
    one, two, _ = cluster.members
    for member in cluster.members:
        member.admin.call("CONFIG", "SET", "repair-rate", "5")
    clients = [one.client() for _ in range(20)]
    for client in clients:
        client.send("ADDJOB", "mail", "body", 0, "REPLICATE", 3)
    cluster.until(lambda: not any(client.silent for client in clients))
    two.restart()
    silent = f"node {two.id.decode()} has not said yet which jobs it has"
    cluster.until(lambda: why_not_safe(one.node.state) == silent)
    cluster.until(lambda: why_not_safe(one.node.state).startswith("jobs with lost copies: "))
    cluster.until(lambda: why_not_safe(one.node.state) == "")
    assert two.node.state.lifecycle.table.count == 20


def test_a_node_that_leaves_may_be_stopped_when_it_is_done() -> None:
    cluster = Cluster(2)
    one, two = cluster.members
    one.admin.call("ADDJOB", "mail", "body", 0, "REPLICATE", 1)
    one.admin.call("CLUSTER", "LEAVING", "yes")
    assert why_not_safe(one.node.state) == "this node is leaving, jobs left to transfer: 1"
    assert why_not_ready(one.node) == "this node is leaving the cluster"
    cluster.until(lambda: why_not_safe(one.node.state) == "")
    cluster.until(lambda: two.admin.call("QLEN", "mail") == 1)


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        ("", DEFAULT_TIMEOUT_S),
        ("x=1", DEFAULT_TIMEOUT_S),
        ("timeout=0", 0),
        ("timeout=2.5", 2.5),
        ("a=1&timeout=3600&b=2", 3600),
        ("timeout=3600.1", None),
        ("timeout=", None),
        ("timeout=inf", None),
        ("timeout=-1", None),
        ("timeout=%31", None),
    ],
)
def test_a_timeout_is_a_number_of_seconds(query: str, seconds: float | None) -> None:
    assert timeout_s(query) == seconds
