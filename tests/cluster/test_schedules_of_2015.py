"""The two schedules under which the original lost acknowledged jobs, or crashed, in 2015 (its issues 92 and 97).

Five nodes, REPLICATE 3, RETRY 1, time-outs of 100 ms for clients and nodes; one node after the other is restarted, or
the cluster is split into halves, while a client at each node adds, fetches and acknowledges. Then all is well again,
every node is drained, and every add that was answered has to be accounted for. Times are shorter than they were, and a
third fault, nodes that hang, is added.

Nodes keep jobs in memory only here, so a restart loses copies, and no broker could keep a job whose three holders are
restarted before anybody fetches it. The schedule sees to it that no job loses more than two: a node is killed only when
all jobs that were added before the last but one kill began were delivered.
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

pytestmark = pytest.mark.slow

COPIES = ("REPLICATE", 3, "RETRY", 1, "TTL", 3600)
NODE_TIMEOUT_MS = 100
AWAY_S = 1.5
CALM_S = 1.0
ROUNDS = 8


def restart(node: RealNode) -> None:
    """It dies, stays away and comes back with nothing in memory."""
    node.kill()
    time.sleep(AWAY_S)
    node.restart()


def hang(node: RealNode) -> None:
    """It stands still, and goes on with all it knew."""
    node.stop()
    time.sleep(AWAY_S)
    node.cont()


def publish(account: JobAccount[bytes], record_property: Callable[[str, object], None]) -> None:
    """Put the figures where reports of test runs are made from."""
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
