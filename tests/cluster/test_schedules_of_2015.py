"""The two schedules under which the original lost acknowledged jobs, or crashed, in 2015 (its issues 92 and 97).

Five nodes, REPLICATE 3, RETRY 1, timeouts of 100 ms for clients and nodes. Nodes are restarted one after the other, or
the cluster is split into halves, while a client at each node adds, fetches and acknowledges. Then the faults end, every
node is drained, and every add that was answered must be accounted for. Times are shorter than in 2015, and a third
fault, nodes that hang, is added.

Nodes keep jobs only in memory here, so a restart loses copies, and no broker could keep a job whose three holders are
restarted before it is fetched. The schedule ensures that no job loses more than two copies: a node is killed only when
all jobs that were added before the last but one kill have been delivered.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from disqued.testing.account import JobAccount
from support.cluster import RealCluster, RealNode
from support.totalqueue import Workload
from support.wires import WiredCluster, Wires

pytestmark = [pytest.mark.slow, pytest.mark.long]

COPIES = ("REPLICATE", 3, "RETRY", 1, "TTL", 3600)
NODE_TIMEOUT_MS = 100
AWAY_S = 1.5
CALM_S = 1.0
ROUNDS = 8


def restart(node: RealNode) -> None:
    """Kill the node and start it later with empty memory."""
    node.kill()
    time.sleep(AWAY_S)
    node.restart()


def hang(node: RealNode) -> None:
    """Suspend the node and continue it later."""
    node.stop()
    time.sleep(AWAY_S)
    node.cont()


def publish(account: JobAccount[bytes], record_property: Callable[[str, object], None]) -> None:
    """Add the figures to the report of the test run."""
    record_property("total-queue", str(account))
    print(account)  # noqa: T201 (shown with -rP)


@pytest.mark.parametrize("fault", [restart, hang])
def test_no_job_is_lost_when_one_node_at_a_time_is_down(
    tmp_path: Path, fault: Callable[[RealNode], None], record_property: Callable[[str, object], None]
) -> None:
    with RealCluster(tmp_path, 5, node_timeout_ms=NODE_TIMEOUT_MS) as cluster:
        begun_s = [0.0, 0.0]
        with Workload(cluster.nodes, *COPIES) as work:
            for number in range(ROUNDS):
                cluster.wait_until(lambda: not work.outstanding(begun_s[-2]), "older jobs are delivered")
                begun_s.append(time.monotonic())
                fault(cluster.nodes[number % 5])
                time.sleep(CALM_S)
        account = work.settle(cluster)
    publish(account, record_property)
    account.check(at_least=500)


def test_no_job_is_lost_when_halves_are_separated(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    chance = random.Random(97)
    with Wires() as wires, WiredCluster(tmp_path, wires, 5, node_timeout_ms=NODE_TIMEOUT_MS) as cluster:
        with Workload(cluster.nodes, *COPIES) as work:
            for _ in range(ROUNDS // 2):
                mixed = chance.sample(cluster.nodes, 5)
                wires.halve(mixed[:2], mixed[2:])
                time.sleep(2 * AWAY_S)
                wires.repair()
                time.sleep(2 * CALM_S)
        account = work.settle(cluster)
        assert len(wires.held_bytes) >= 12, "the cuts were some"
    publish(account, record_property)
    account.check(at_least=500)
