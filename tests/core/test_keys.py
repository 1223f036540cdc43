"""The keys of recently added jobs: the memory that is returned when many of them are forgotten."""

from __future__ import annotations

import sys

from disqued.core.jobs.jobid import stamp_for
from disqued.core.lifecycle.keys import SHARDS, Keys
from disqued.core.memory.accounting import BASE_BYTES, KEY_BYTES, Memory
from disqued.core.timers.wheel import TimerWheel


def job_id(number: int, tail: bytes = b"tailtail") -> bytes:
    return b"D-5ca1ab1e-" + stamp_for(b"mail", b"%d" % number) + tail + b"-05a1"


def dict_bytes(keys: Keys) -> int:
    """The size of the dicts without their entries."""
    return sum(sys.getsizeof(shard) for shard in keys._shards)


def test_large_dicts_shrink_when_their_keys_are_forgotten() -> None:
    memory = Memory()
    keys = Keys(TimerWheel(), memory)
    empty_bytes = dict_bytes(keys)
    for number in range(50_000):
        keys.add(job_id(number), 10)
    assert memory.used_bytes == BASE_BYTES + 50_000 * KEY_BYTES
    for number in range(49_900):
        keys.forget(job_id(number))
    large_bytes = dict_bytes(keys)
    for number in range(3, 3 + SHARDS):
        keys.shrink(number)
    assert dict_bytes(keys) < large_bytes // 10
    assert all(keys.get(stamp_for(b"mail", b"%d" % number)) is not None for number in range(49_900, 50_000))
    assert sum(len(taken) for taken in keys.take_all()) == 100
    assert dict_bytes(keys) == empty_bytes


def test_keys_are_spread_over_the_dicts() -> None:
    keys = Keys(TimerWheel(), Memory())
    for number in range(100 * SHARDS):
        keys.add(job_id(number), 10)
    sizes = [len(shard) for shard in keys._shards]
    assert max(sizes) < 400, sizes


def test_forgetting_an_older_job_of_a_key_does_nothing() -> None:
    keys = Keys(TimerWheel(), Memory())
    keys.add(job_id(1), 10)
    keys.forget(job_id(1, b"another_"))
    keys.begin(job_id(1, b"another_"), 5, 5)
    known = keys.get(stamp_for(b"mail", b"1"))
    assert known is not None
    assert (known.job_id, known.added_ms) == (job_id(1), 0)
