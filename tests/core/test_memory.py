"""The memory count and its levels, and that what leaves is not counted any more."""

from __future__ import annotations

import random

import pytest

from disqued.core.memory import BASE_BYTES, CLIENT_BYTES, JOB_BYTES, QUEUE_BYTES, Memory
from disqued.testing.local import LocalNode

QUEUES = ("a", "b", "c")


@pytest.mark.parametrize(
    ("used_bytes", "level"), [(0, 0), (750, 0), (751, 1), (950, 1), (951, 2), (1000, 2), (5000, 2)]
)
def test_the_levels_are_75_and_95_percent(used_bytes: int, level: int) -> None:
    memory = Memory()
    memory.limit(1000)
    memory.used_bytes = used_bytes
    assert memory.level() == level


def test_percentages_are_of_whole_hundredths_of_the_limit() -> None:
    memory = Memory()
    memory.limit(1099)
    memory.used_bytes = 951
    assert memory.level() == 2


def test_without_a_limit_any_use_is_fine() -> None:
    memory = Memory()
    memory.limit(1)
    assert memory.level() == 2
    memory.limit(0)
    assert memory.level() == 0


def test_a_fresh_node_uses_its_base_and_each_thing_adds_its_size() -> None:
    local = LocalNode()
    memory = local.node.state.lifecycle.memory
    assert memory.used_bytes == BASE_BYTES
    client = local.client()
    assert memory.used_bytes == BASE_BYTES + CLIENT_BYTES
    client.add("queue", "twelve bytes")
    assert memory.used_bytes == BASE_BYTES + CLIENT_BYTES + QUEUE_BYTES + len("queue") + JOB_BYTES + 12


def test_when_everything_is_gone_the_count_is_back_at_the_base() -> None:
    chance = random.Random(0)
    local = LocalNode()
    clients = [local.client() for _ in range(5)]
    ids: list[bytes] = []
    for _ in range(600):
        client = chance.choice(clients)
        queue = chance.choice(QUEUES)
        match chance.randrange(6):
            case 0 | 1 | 2:
                option = chance.choice([("RETRY", 0), ("RETRY", 1), ("DELAY", 2), ("TTL", 3)])
                ids.append(client.add(queue, b"x" * chance.randrange(100), "TTL", 60, *option))
            case 3:
                client.take(queue, count=chance.randrange(1, 4))
            case 4 if ids:
                client.call(chance.choice(["ACKJOB", "NACK", "DEQUEUE", "DELJOB", "ENQUEUE"]), chance.choice(ids))
            case _:
                local.run(milliseconds=chance.randrange(300))
    assert local.node.state.lifecycle.table.count > 0
    local.run(seconds=62)
    assert local.node.state.lifecycle.table.count == 0
    local.run(seconds=360)
    for client in clients:
        client.disconnect()
    lifecycle = local.node.state.lifecycle
    assert len(lifecycle.queues) == 0
    assert lifecycle.memory.used_bytes == BASE_BYTES
    assert lifecycle.agenda.next_ms() == 0
    assert lifecycle.memory.peak_bytes > BASE_BYTES
