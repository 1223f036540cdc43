"""At-most-once jobs with a delay, and a power loss that takes the last records: they are not delivered twice."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from disqued.config import Config
from disqued.testing.cluster import Cluster
from disqued.testing.local import LocalNode

AT_MOST_ONCE = ("REPLICATE", 1, "RETRY", 0, "TTL", 3600)
POLICIES = ("always", "everysec", "no")


class NothingKept(random.Random):
    """Draws by which a power loss takes everything that was not synced."""

    def random(self) -> float:
        return 0.99

    def choice(self, seq: Sequence[int]) -> int:  # type: ignore[override]
        return seq[0]


def logging(policy: str) -> Config:
    config = Config()
    config.assign("appendonly", True)
    config.assign("appendfsync", policy)
    return config


def settle(node: LocalNode) -> None:
    """Have all records so far synced, and the next sync due in a second at the earliest."""
    client = node.client()
    client.call("BGREWRITEAOF")
    node.run(seconds=2)
    client.add("print")


def lose_power(node: LocalNode, *, set_back_ms: int = 0) -> None:
    """Lose what the disk has not synced, start again, with the clock set back."""
    node.crash()
    node.host.disk.chance = NothingKept()
    node.host.disk.lose_power()
    node.host.now_ms -= set_back_ms
    node.restart()


@pytest.mark.parametrize("policy", POLICIES)
def test_a_job_that_is_queued_before_its_delay_ends_is_delivered_once(policy: str) -> None:
    node = LocalNode(logging(policy))
    client = node.client()
    job = client.add("mail", "body", "RETRY", 0, "DELAY", 60)
    settle(node)
    assert client.call("ENQUEUE", job) == 1
    assert client.take("mail") == [job]
    lose_power(node)
    node.run(seconds=100)
    assert node.client().take("mail") == []


@pytest.mark.parametrize("policy", POLICIES)
def test_a_job_is_delivered_once_when_the_clock_is_set_back_before_the_restart(policy: str) -> None:
    node = LocalNode(logging(policy))
    client = node.client()
    job = client.add("mail", "body", "RETRY", 0, "DELAY", 10)
    node.run(seconds=7)
    settle(node)
    node.run(seconds=1.2)
    client.add("print")
    assert client.take("mail") == [job]
    lose_power(node, set_back_ms=8000)
    node.run(seconds=100)
    assert node.client().take("mail") == []


@pytest.mark.parametrize("policy", POLICIES)
def test_a_delayed_job_that_a_leaving_node_gave_away_is_delivered_once(policy: str) -> None:
    cluster = Cluster(2, config=lambda: logging(policy))
    first, second = cluster.members
    job = first.admin.add("mail", "body", *AT_MOST_ONCE, "DELAY", 30)
    cluster.run(seconds=3)
    first.admin.call("BGREWRITEAOF")
    cluster.run(seconds=2)
    first.admin.add("print", "body", *AT_MOST_ONCE)
    assert first.admin.call("CLUSTER", "LEAVING", "yes") == b"OK"
    cluster.until(lambda: cluster.copies(job) == [second] and bool(cluster.sent("ENQUEUE")))
    cluster.run(milliseconds=10)
    first.host.disk.chance = NothingKept()
    first.lose_power()
    first.restart()
    assert cluster.copies(job) == [second]
    cluster.run(seconds=40)
    taken = [found for member in cluster.members for found in member.admin.take("mail")]
    assert taken == [job]
