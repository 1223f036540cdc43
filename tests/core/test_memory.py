"""Memory accounting: the count and its levels, resident memory, and that removed objects are uncounted."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise

import pytest

from disqued.core.memory.accounting import (
    BASE_BYTES,
    CLIENT_BYTES,
    EVICTION,
    FULL,
    JOB_BYTES,
    Memory,
    body_bytes,
    queue_bytes,
)
from disqued.testing.local import LocalNode

MB = 1 << 20
QUEUES = ("a", "b", "c")


@pytest.mark.parametrize(
    ("used_percent", "level"), [(0, 0), (75, 0), (76, 1), (95, 1), (96, 2), (100, 2), (101, 3), (500, 3)]
)
def test_the_levels_are_75_95_and_100_percent(used_percent: int, level: int) -> None:
    memory = Memory()
    memory.limit(1000 * MB)
    memory.used_bytes = used_percent * 10 * MB
    assert memory.level() == level


def test_levels_are_computed_from_whole_hundredths_of_the_limit() -> None:
    memory = Memory()
    memory.limit(1099)
    memory.used_bytes = 951
    assert memory.level() == EVICTION


def test_a_level_is_left_below_the_value_at_which_it_is_entered() -> None:
    memory = Memory()
    memory.limit(1000 * MB)
    seen = []
    for used_percent in (74, 76, 74, 73, 72, 74, 96, 94, 93, 92, 94, 101, 99, 98, 97, 99, 50, 74):
        memory.used_bytes = used_percent * 10 * MB
        seen.append(int(memory.level()))
    assert seen == [0, 1, 1, 1, 0, 0, 2, 2, 2, 1, 1, 3, 3, 3, 2, 2, 0, 0]


def test_use_that_fluctuates_around_a_level_changes_it_once() -> None:
    chance = random.Random(7)
    memory = Memory()
    memory.limit(1000 * MB)
    levels = []
    for _ in range(2000):
        memory.used_bytes = int(chance.uniform(73.5, 76.5) * 10 * MB)
        levels.append(memory.level())
    assert sum(one != other for one, other in pairwise(levels)) <= 1


def test_without_maxmemory_every_size_fits() -> None:
    memory = Memory()
    memory.limit(1)
    assert memory.level() == FULL
    memory.limit(0)
    assert memory.level() == 0
    assert memory.fits(1 << 50)


class Process:
    """A process with a given resident size; counts how often it is read."""

    def __init__(self) -> None:
        self.resident_bytes = 30 * MB
        self.asked = 0

    def __call__(self) -> int:
        self.asked += 1
        return self.resident_bytes


def test_a_process_whose_resident_memory_exceeds_the_margin_is_full() -> None:
    process = Process()
    memory = Memory(process)
    memory.limit(1000 * MB, 4000 * MB)
    process.resident_bytes += 1170 * MB
    memory.look()
    assert memory.level() == 0, "115 % of maxmemory plus 32 MB are within the margin"
    process.resident_bytes += 20 * MB
    memory.look()
    assert memory.level() == FULL
    assert memory.resident_exceeded
    assert not memory.fits(1)
    process.resident_bytes -= 30 * MB
    memory.look()
    assert memory.level() == FULL, "not far enough below the limit yet"
    process.resident_bytes -= 30 * MB
    memory.look()
    assert memory.level() == 0


@pytest.mark.parametrize("maxmemory_mb", [200, 256, 100_000])
def test_the_limit_of_the_container_holds_however_high_maxmemory_is(maxmemory_mb: int) -> None:
    process = Process()
    memory = Memory(process)
    memory.limit(maxmemory_mb * MB, 256 * MB)
    process.resident_bytes = 240 * MB
    memory.look()
    assert memory.level() == FULL


def test_resident_memory_is_read_again_when_the_count_grows() -> None:
    process = Process()
    memory = Memory(process)
    memory.limit(1000 * MB, 4000 * MB)
    process.asked = 0
    for _ in range(100):
        memory.used_bytes += MB
        memory.level()
    assert 20 <= process.asked <= 60
    process.asked = 0
    for _ in range(10_000):
        memory.level()
    assert process.asked == 0


def test_the_allocator_is_asked_once_to_return_freed_memory() -> None:
    process = Process()
    memory = Memory(process)
    memory.limit(1000 * MB, 4000 * MB)

    def is_wasteful(used_mb: int) -> bool:
        memory.used_bytes = used_mb * MB
        memory.look()
        return memory.is_wasteful

    process.resident_bytes = 530 * MB
    assert not is_wasteful(500)
    assert is_wasteful(100)
    process.resident_bytes = 400 * MB
    memory.gave_back()
    assert not is_wasteful(100)
    assert is_wasteful(20)


def test_body_sizes_are_rounded_as_the_allocators_do() -> None:
    sizes = [body_bytes(length) for length in range(5000)]
    assert sizes[0] == 0
    assert all(size % 16 == 0 for size in sizes)
    assert all(0 <= after - before <= 48 for before, after in pairwise(sizes[1:]))
    assert all(length + 33 <= size <= length + 56 for length, size in enumerate(sizes) if length)


def test_an_empty_node_counts_its_base_and_each_object_adds_its_size() -> None:
    local = LocalNode()
    memory = local.node.state.lifecycle.memory
    assert memory.used_bytes == BASE_BYTES
    client = local.client()
    assert memory.used_bytes == BASE_BYTES + CLIENT_BYTES
    client.add("queue", "twelve bytes")
    assert memory.used_bytes == BASE_BYTES + CLIENT_BYTES + queue_bytes(b"queue") + JOB_BYTES + body_bytes(12)


def _use(local: LocalNode, seed: int) -> Iterator[None]:
    """Random commands of some clients."""
    chance = random.Random(seed)
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
    yield
    for client in clients:
        client.disconnect()
    yield


def test_the_count_returns_to_the_base_when_everything_is_gone() -> None:
    local = LocalNode()
    steps = _use(local, 0)
    next(steps)
    assert local.node.state.lifecycle.table.count > 0
    local.run(seconds=62)
    assert local.node.state.lifecycle.table.count == 0
    local.run(seconds=360)
    next(steps)
    lifecycle = local.node.state.lifecycle
    assert len(lifecycle.queues) == 0
    assert lifecycle.memory.used_bytes == BASE_BYTES
    local.run(milliseconds=200)
    assert lifecycle.memory.counted_bytes == BASE_BYTES
    assert lifecycle.timers.next_ms() == 0
    assert lifecycle.memory.peak_bytes > BASE_BYTES
