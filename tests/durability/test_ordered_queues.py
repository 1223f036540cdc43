"""Ordered queues on real nodes that are killed, suspended and cut off: no job is lost, and none out of order.

Clients of a SINGLE queue and of a queue with group keys work meanwhile. What they saw is checked in the end
(`disqued.testing.orderedcheckers`). The runs with many faults are marked long.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from durability.conftest import LONG
from support.cluster import RealCluster, RealNode
from support.orderedclients import OrderedClients
from support.wires import WiredCluster, Wires

DOWN_S: Final = 1.0
HUNG_S: Final = 2.5
"""Longer than the time after which a node counts as silent."""
CUT_S: Final = 3.0


def kill(node: RealNode) -> None:
    """Kill a node, and start it again a little later."""
    node.kill()
    time.sleep(DOWN_S)
    node.restart()


def kill_and_start_at_once(node: RealNode) -> None:
    """Kill a node, and start it before the others have noticed."""
    node.restart()


def suspend(node: RealNode) -> None:
    """Stop a node, whose connections stay open, and let it continue."""
    node.stop()
    time.sleep(HUNG_S)
    node.cont()


FAULTS: Final[tuple[Callable[[RealNode], None], ...]] = (kill, kill_and_start_at_once, suspend)


def test_order_is_kept_when_the_leader_is_killed(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 3) as cluster, OrderedClients(cluster) as clients:
        clients.more(20)
        with clients.fault():
            kill(clients.leader())
        clients.more(20)
        clients.settle()
    clients.check(at_least=40)


@pytest.mark.slow
@pytest.mark.parametrize("faults", [6, pytest.param(40, marks=LONG)])
@pytest.mark.parametrize("nodes", [3, 5])
def test_order_is_kept_when_nodes_are_killed_and_suspended(tmp_path: Path, nodes: int, faults: int) -> None:
    """One at a time: the leader or a follower of one of the queues."""
    chance = random.Random(f"{nodes} {faults}")
    with RealCluster(tmp_path, nodes) as cluster, OrderedClients(cluster, "REPLICAS", 3) as clients:
        for number in range(faults):
            clients.more(10)
            queue = chance.choice(("strict", "grouped"))
            victim = clients.leader(queue) if number % 3 != 2 else clients.follower(queue)
            with clients.fault():
                chance.choice(FAULTS)(victim)
        cluster.wait_whole()
        clients.more(10)
        clients.settle()
    clients.check(at_least=10 * faults)


@pytest.mark.slow
@pytest.mark.parametrize("faults", [2, pytest.param(15, marks=LONG)])
def test_order_is_kept_when_all_nodes_are_killed_at_once(tmp_path: Path, faults: int) -> None:
    chance = random.Random(faults)
    with RealCluster(tmp_path, 3) as cluster, OrderedClients(cluster) as clients:
        for _ in range(faults):
            clients.more(15)
            time.sleep(chance.random() / 10)
            with clients.fault():
                for node in cluster.nodes:
                    node.kill()
                for node in cluster.nodes:
                    node.start()
                cluster.wait_until(lambda: all(node.server.serves() for node in cluster.nodes), "the nodes serve")
        clients.more(15)
        clients.settle()
    clients.check(at_least=15 * faults)


@pytest.mark.slow
@pytest.mark.parametrize("faults", [4, pytest.param(25, marks=LONG)])
@pytest.mark.parametrize("nodes", [3, 5])
def test_order_is_kept_when_nodes_are_cut_off(tmp_path: Path, nodes: int, faults: int) -> None:
    """The leader or a follower is separated from all others, in both directions or in one."""
    chance = random.Random(f"{nodes} {faults}")
    with (
        Wires() as wires,
        WiredCluster(tmp_path, wires, nodes) as cluster,
        OrderedClients(cluster, "REPLICAS", nodes) as clients,
    ):
        for number in range(faults):
            clients.more(10)
            queue = chance.choice(("strict", "grouped"))
            one = clients.leader(queue) if number % 2 == 0 else clients.follower(queue)
            others = [node for node in cluster.nodes if node is not one]
            with clients.fault():
                cut = (wires.halve, wires.cut, lambda some, rest: wires.cut(rest, some))[number % 3]
                cut([one], others)
                time.sleep(CUT_S)
                wires.repair()
        assert sum(wires.held_bytes.values()) > 0, "the cuts had an effect"
        clients.more(10)
        clients.settle()
    clients.check(at_least=10 * faults)
