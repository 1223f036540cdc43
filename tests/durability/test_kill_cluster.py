"""Nodes of a cluster are killed, one or all at once: each job that was answered has its copies on disk."""

from __future__ import annotations

import contextlib
import random
import signal
from collections import Counter
from functools import partial

import pytest

from disqued.testing.ports import LOOPBACK
from durability.conftest import LONG, POLICIES, Make
from support.durable import DurableNode, StoredJobs, is_once, load, sleep_up_to

pytestmark = pytest.mark.slow


def wait_whole(nodes: list[DurableNode]) -> None:
    """Wait until all nodes serve clients and are connected to each other."""
    for node in nodes:
        node.wait_ready()
    for node in nodes:
        node.until(partial(node.sees, len(nodes) - 1), "the cluster is complete")


@pytest.mark.parametrize("points", [24, pytest.param(120, marks=LONG)])
@pytest.mark.parametrize("killed", [3, 1], ids=["all nodes at once", "one node"])
def test_answered_jobs_keep_two_copies_when_nodes_are_killed(make: Make, killed: int, points: int) -> None:
    """Each job that was answered has copies on the disks of two nodes, whichever nodes were killed."""
    chance = random.Random(f"cluster {killed} {points}")
    nodes = [make(policy, policy, "--cluster-node-timeout", "1000") for policy in POLICIES]
    stored = StoredJobs()
    for node in nodes:
        node.start()
    for node in nodes[1:]:
        nodes[0].call("CLUSTER", "MEET", LOOPBACK, node.port)
    wait_whole(nodes)
    for life in range(points // 3):
        with contextlib.ExitStack() as loads:
            for node in nodes:
                loads.enter_context(load(node, stored, "REPLICATE", 2, clients=2, seed=(killed, life, node.port)))
            sleep_up_to(chance, 100)
            victims = chance.sample(nodes, killed)
            for node in victims:
                node.signal(signal.SIGKILL)
        for node in victims:
            node.kill()
            node.begin()
        wait_whole(nodes)
        found = [node.jobs() for node in nodes]
        stored.check({job_id: body for jobs in found for job_id, body in jobs.items()}, revives=True)
        copies = Counter(body for jobs in found for body in jobs.values())
        answered = {body for body in stored.uncompleted if stored.added[body] > 0}
        single = [body for body in answered if copies[body] < 2 and not is_once(body)]
        assert not single, f"{len(single)} jobs have no second copy on disk"
