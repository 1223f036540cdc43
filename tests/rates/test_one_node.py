"""Rates and caps on a single node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rates.workers import Workers, add_jobs, excess
from support.fixtures import settled

if TYPE_CHECKING:
    from disqued.testing.cluster import Cluster
    from disqued.testing.local import LocalClient, LocalNode


@pytest.fixture
def alone() -> Cluster:
    """A cluster of one node, up for ten seconds."""
    return settled(1)


def test_a_rate_delivers_a_burst_and_then_as_many_jobs_per_second(alone: Cluster) -> None:
    (node,) = alone.members
    node.admin.call("QCONF", "mail", "SET", "rate", "10", "burst", "4")
    add_jobs(node, "mail", 100)
    workers = Workers(alone, "mail")
    workers.start(node, 8)
    assert len(workers.times) == 4
    alone.run(seconds=5)
    assert 4 + 48 <= len(workers.times) <= 4 + 50
    assert excess(workers.times, 10) <= 4 + 1e-6


def test_the_first_job_of_an_idle_queue_is_delivered_at_once(alone: Cluster) -> None:
    (node,) = alone.members
    node.admin.call("QCONF", "mail", "SET", "rate", "1/m")
    workers = Workers(alone, "mail")
    workers.start(node, 2)
    alone.run(seconds=70)
    add_jobs(node, "mail", 2)
    assert len(workers.times) == 1
    assert node.admin.stat("mail")["limited"] == b"rate"
    alone.run(seconds=59)
    assert len(workers.times) == 1
    alone.run(seconds=2)
    assert len(workers.times) == 2
    assert node.admin.stat("mail")["limited"] == b"no"


@pytest.mark.parametrize(
    ("value", "per_minute"), [("2", 120), ("2/s", 120), ("90/m", 90), ("1800/h", 30), ("0.5", 30), ("43200/d", 30)]
)
def test_a_rate_has_units_and_fractions(alone: Cluster, value: str, per_minute: int) -> None:
    (node,) = alone.members
    assert node.admin.call("QCONF", "mail", "SET", "rate", value, "burst", 1) == b"OK"
    add_jobs(node, "mail", 130)
    workers = Workers(alone, "mail")
    workers.start(node, 3)
    alone.run(seconds=60)
    assert per_minute - 2 <= len(workers.times) <= per_minute + 1


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("rate", "0"),
        ("rate", "-1"),
        ("rate", "10/w"),
        ("rate", "1e3"),
        ("rate", "ten"),
        ("rate", ""),
        ("rate", "nan"),
        ("rate", "10/"),
        ("burst", "0"),
        ("inflight", "0"),
        ("inflight", "1.5"),
    ],
)
def test_values_that_limit_nothing_or_everything_are_refused(client: LocalClient, setting: str, value: str) -> None:
    reply = client.call("QCONF", "mail", "SET", setting, value)
    assert str(reply).startswith(f"ERR {setting} must be"), reply


def test_nohang_without_a_token_is_answered_at_once_and_gets_the_next_one(alone: Cluster) -> None:
    (node,) = alone.members
    node.admin.call("QCONF", "mail", "SET", "rate", "2", "burst", 1)
    add_jobs(node, "mail", 3)
    assert len(node.admin.take("mail", count=3)) == 1
    assert node.admin.take("mail") == []
    alone.run(milliseconds=600)
    assert len(node.admin.take("mail", count=3)) == 1
    assert node.admin.take("mail") == []


def test_a_limited_queue_does_not_hold_back_other_queues_of_a_request(alone: Cluster) -> None:
    (node,) = alone.members
    node.admin.call("QCONF", "mail", "SET", "rate", "1/h")
    add_jobs(node, "mail", 3)
    add_jobs(node, "print", 3)
    assert len(node.admin.take("mail", "print", count=10)) == 4
    patterned = node.admin.call("GETJOB", "NOHANG", "COUNT", 10, "FROMPATTERN", "*")
    assert patterned is None


def test_clients_that_wait_for_a_pattern_are_served_as_tokens_come(alone: Cluster) -> None:
    (node,) = alone.members
    node.admin.call("QCONF", "mail:*", "SET", "rate", "1", "burst", 1)
    for queue in ("mail:a", "mail:b"):
        add_jobs(node, queue, 3)
    waiting = [node.client() for _ in range(6)]
    for client in waiting:
        client.send("GETJOB", "FROMPATTERN", "mail:*")
    assert sum(not client.silent for client in waiting) == 2
    alone.run(milliseconds=1100)
    assert sum(not client.silent for client in waiting) == 4
    alone.run(milliseconds=1000)
    assert sum(not client.silent for client in waiting) == 6


def test_a_cap_counts_jobs_until_they_are_acknowledged_or_given_back(alone: Cluster) -> None:
    (node,) = alone.members
    node.admin.call("QCONF", "db", "SET", "inflight", 2)
    add_jobs(node, "db", 5, "RETRY", 60)
    first, second = node.admin.take("db", count=5)
    waiting = node.client()
    waiting.send("GETJOB", "FROM", "db")
    assert waiting.replies() == []
    assert node.admin.stat("db")["limited"] == b"inflight"
    node.admin.call("ACKJOB", first)
    alone.run(milliseconds=20)
    assert len(waiting.replies()) == 1
    assert node.admin.take("db") == []
    node.admin.call("NACK", second)
    alone.run(milliseconds=20)
    assert len(node.admin.take("db", count=5)) == 1


def test_a_lease_that_is_over_frees_its_place_and_working_keeps_it(alone: Cluster) -> None:
    (node,) = alone.members
    node.admin.call("QCONF", "db", "SET", "inflight", 1)
    add_jobs(node, "db", 2, "RETRY", 10)
    (job,) = node.admin.take("db", count=2)
    alone.run(seconds=8)
    node.admin.call("WORKING", job)
    alone.run(seconds=8)
    assert node.admin.take("db") == []
    alone.run(seconds=4)
    assert node.admin.take("db") == [job]
    node.admin.call("WORKING", job, "FOR", 30)
    alone.run(seconds=25)
    assert node.admin.take("db") == []
    node.admin.call("NACK", job, "DELAY", 5)
    alone.run(milliseconds=20)
    assert len(node.admin.take("db")) == 1


def test_a_job_that_is_delivered_at_most_once_counts_until_it_is_acknowledged_or_expires(alone: Cluster) -> None:
    (node,) = alone.members
    node.admin.call("QCONF", "db", "SET", "inflight", 1)
    add_jobs(node, "db", 3, "RETRY", 0, "TTL", 20)
    (job,) = node.admin.take("db", count=3)
    alone.run(seconds=1)
    assert node.admin.take("db") == []
    node.admin.call("ACKJOB", job)
    alone.run(milliseconds=20)
    assert len(node.admin.take("db", count=3)) == 1
    add_jobs(node, "db", 1, "TTL", 100)
    alone.run(seconds=21)
    assert len(node.admin.take("db", count=3)) == 1


def test_a_cap_and_a_rate_hold_together(alone: Cluster) -> None:
    (node,) = alone.members
    node.admin.call("QCONF", "db", "SET", "inflight", 3, "rate", "5", "burst", 2)
    add_jobs(node, "db", 100)
    workers = Workers(alone, "db", busy_ms=1000)
    workers.start(node, 10)
    alone.run(seconds=20)
    assert workers.most_in_flight == 3
    assert excess(workers.times, 5) <= 2 + 1e-6
    assert 55 <= len(workers.times) <= 63


def test_jobs_are_delivered_by_priority_and_a_paused_queue_uses_no_tokens(alone: Cluster) -> None:
    (node,) = alone.members
    node.admin.call("QCONF", "mail", "SET", "rate", "1/h", "burst", 2)
    low = add_jobs(node, "mail", 2)
    (high,) = add_jobs(node, "mail", 1, "PRIORITY", 5)
    node.admin.call("PAUSE", "mail", "out")
    assert node.admin.take("mail", count=3) == []
    node.admin.call("PAUSE", "mail", "none")
    assert node.admin.take("mail", count=3) == [high, low[0]]


def test_limits_can_be_changed_and_removed_while_clients_wait(alone: Cluster) -> None:
    (node,) = alone.members
    node.admin.call("QCONF", "mail", "SET", "rate", "1/d")
    add_jobs(node, "mail", 40)
    workers = Workers(alone, "mail")
    workers.start(node, 4)
    alone.run(seconds=2)
    assert len(workers.times) == 1
    node.admin.call("QCONF", "mail", "SET", "rate", "10")
    alone.run(seconds=2)
    assert 18 <= len(workers.times) <= 22
    node.admin.call("QCONF", "mail", "UNSET", "*")
    alone.run(seconds=1)
    assert len(workers.times) == 40
    assert node.admin.stat("mail")["limited"] == b"no"


def test_flushall_and_removed_queues_free_what_was_in_flight(alone: Cluster) -> None:
    (node,) = alone.members
    node.admin.call("QCONF", "db", "SET", "inflight", 1)
    add_jobs(node, "db", 2)
    assert len(node.admin.take("db", count=2)) == 1
    node.admin.call("DEBUG", "FLUSHALL")
    alone.run(seconds=1)
    add_jobs(node, "db", 2)
    assert len(node.admin.take("db", count=2)) == 1
    assert node.node.state.lifecycle.queues.capped == 1


def test_nothing_is_armed_when_nobody_waits(local: LocalNode, client: LocalClient) -> None:
    client.call("QCONF", "mail", "SET", "rate", "1", "inflight", 5)
    client.add("mail")
    local.run(seconds=5)
    limiter = local.node.state.lifecycle.queues.get(b"mail").limiter  # type: ignore[union-attr]
    assert limiter is not None
    assert limiter.timer_next is None
