"""Schedules on three real nodes, one of which is killed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from disqued.client import Client
from support.cluster import RealCluster

PERIOD_MS = 1000
RUNS = 6


def due_times(client: Client, wanted: int) -> list[int]:
    """Take jobs of the schedule until there are so many; the times at which they were due, in milliseconds."""
    found: list[int] = []
    until_s = time.monotonic() + 60
    while len(found) < wanted:
        assert time.monotonic() < until_s, found
        for job in client.get("ticks", timeout_ms=1000, count=10):
            details = client.execute("SHOW", job.id)
            assert isinstance(details, list)
            due_ms = details[details.index(b"due-ms") + 1]
            assert isinstance(due_ms, int)
            found.append(due_ms)
            client.ack(job.id)
    return found


@pytest.mark.slow
def test_next_node_fires_when_the_first_one_is_killed_and_no_time_runs_twice(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 3) as cluster:
        with Client([cluster.nodes[0].address]) as client:
            client.schedule_set("tick", "every 1 s", "ticks", "tick", retry_s=60, ttl_s=120)
            before = due_times(client, RUNS)
            node = client.schedule_show("tick").node
        victim = next(one for one in cluster.nodes if one.id == node)
        left = [one for one in cluster.nodes if one is not victim]
        victim.kill()
        with Client([left[0].address]) as client:
            after = due_times(client, RUNS)
            cluster.wait_until(lambda: client.schedule_show("tick").node in {one.id for one in left})
        found = sorted(before + after)
        assert len(set(found)) == len(found)
        assert all(due_ms % PERIOD_MS == 0 for due_ms in found)
