"""Jobs that move between real nodes: to consumers at other nodes, and away from nodes that leave under load."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from support.cluster import RealCluster
from support.totalqueue import Workload

WAITS_S: Final = 5.0
"""A node with blocked clients asks others at once, after 4 seconds and after 12; the next time is much later."""
AT_ONCE_S: Final = 5.0
"""Well before it."""


def test_job_moves_at_once_to_a_consumer_waiting_at_another_node(tmp_path: Path) -> None:
    """Asking again would be too late: the node that gets the job remembers the waiting node."""
    with RealCluster(tmp_path, 3) as cluster:
        adding, waiting, _ = cluster.nodes
        with contextlib.closing(waiting.connect()) as client:
            client.send("GETJOB", "FROM", "q")
            time.sleep(WAITS_S)
            job = adding.call("ADDJOB", "q", "x", 0, "RETRY", 60)
            client.socket.settimeout(AT_ONCE_S)
            assert client.read() == [[b"q", job, b"x"]]
            assert waiting.call("ACKJOB", job) == 1
        cluster.wait_until(lambda: not cluster.holders(job), "the job is collected")


def test_consumers_at_another_node_empty_a_queue_without_duplicates(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 3) as cluster:
        adding, *fetching = cluster.nodes
        added = {adding.call("ADDJOB", "q", number, 0, "REPLICATE", 2, "RETRY", 60) for number in range(300)}
        found: Counter[bytes] = Counter()
        deadline_s = time.monotonic() + 30
        while len(found) < len(added) and time.monotonic() < deadline_s:
            for node in fetching:
                for _, job, _ in node.call("GETJOB", "TIMEOUT", 500, "COUNT", 50, "FROM", "q") or []:
                    found[job] += 1
                    node.call("ACKJOB", job)
        assert found == Counter(added)
        cluster.wait_until(
            lambda: all(node.info("jobs")["registered_jobs"] == "0" for node in cluster.nodes), "all are collected"
        )


@pytest.mark.slow
def test_node_leaves_under_load_without_losses_or_duplicates(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 4) as cluster:
        leaving, *staying = cluster.nodes
        with Workload(cluster.nodes, "REPLICATE", 2, "RETRY", 60) as work:
            cluster.wait_until(lambda: len(work.account.delivered) > 100, "there is work")
            before = len(work.account.delivered)
            assert leaving.call("CLUSTER", "LEAVING", "yes") == b"OK"
            cluster.wait_until(lambda: len(work.account.delivered) > before + 300, "work continues")
            work.end(0)
            cluster.wait_until(lambda: leaving.info("jobs")["registered_jobs"] == "0", "it is empty")
            gone = leaving.id
            assert leaving.end() == 0
            for node in staying:
                assert node.call("CLUSTER", "FORGET", gone) == b"OK"
            before = len(work.account.delivered)
            cluster.wait_until(lambda: len(work.account.delivered) > before + 100, "work continues without it")
        account = work.settle(cluster)
        account.check(at_least=500)
        assert account.duplicates == 0
        assert all(gone not in node.view() for node in staying)


def test_pause_reaches_seven_nodes_and_ends_on_all(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 7) as cluster:
        first, *others = cluster.nodes
        for state in (b"all", b"none"):
            assert first.call("PAUSE", "q", state, "bcast") == state
            cluster.wait_until(
                partial(lambda wanted: all(node.call("PAUSE", "q", "state") == wanted for node in others), state),
                "all heard it",
            )
