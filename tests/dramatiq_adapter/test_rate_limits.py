"""Rate limiters and barriers with three real nodes. Dramatiq's own tests of them run in `suites/test_dramatiq.py`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dramatiq
import pytest
from dramatiq import group
from dramatiq.middleware import GroupCallbacks
from dramatiq.rate_limits import Barrier, BucketRateLimiter, ConcurrentRateLimiter, WindowRateLimiter

from disqued.dramatiq import DisqueBroker
from disqued.dramatiq.rate_limits import DisqueBackend
from dramatiq_adapter.workers import LONG_MS, LONG_S, Calls, actor, worker
from support.cluster import RealCluster

TTL_MS = 600_000


@pytest.fixture
def make_backend(nodes: RealCluster, request: pytest.FixtureRequest) -> Callable[[], DisqueBackend]:
    """Makes backends that share their counters, as processes have them; each knows another node first."""
    addresses = [node.address for node in nodes.nodes] * 10

    def make() -> DisqueBackend:
        return DisqueBackend(nodes=[addresses.pop()], namespace=request.node.name)

    return make


@pytest.fixture
def backend(make_backend: Callable[[], DisqueBackend]) -> Iterator[DisqueBackend]:
    with make_backend() as backend:
        yield backend


def test_counters_keep_their_bounds_whoever_counts(make_backend: Callable[[], DisqueBackend]) -> None:
    backends = [make_backend() for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:

        def succeed(call: Callable[[DisqueBackend], bool]) -> int:
            return sum(threads.map(call, backends))

        assert succeed(lambda one: one.add("k", 7, TTL_MS)) == 1
        assert succeed(lambda one: one.decr("k", 1, 2, TTL_MS)) == 5
        assert succeed(lambda one: one.decr("k", 2, 1, TTL_MS)) == 0
        assert succeed(lambda one: one.incr("k", 1, 7, TTL_MS)) == 5
        assert succeed(lambda one: one.decr("k", 1, 0, TTL_MS)) == 7
        assert succeed(lambda one: one.decr("k", 1, 0, TTL_MS)) == 0
        assert not backends[0].incr("k", 3, 2, TTL_MS)
        assert backends[0].incr("k", 3, 3, TTL_MS)
        assert not backends[1].decr("k", 4, 0, TTL_MS)
        assert not backends[1].decr("k", 2, 2, TTL_MS)
        assert backends[2].decr("k", 2, 1, TTL_MS)
        assert succeed(lambda one: one.incr_and_sum("w@9", lambda: ["w@9", "w@8"], 1, 5, TTL_MS)) == 5
        assert succeed(lambda one: one.incr_and_sum("v@9", lambda: ["v@9", "w@8"], 1, 7, TTL_MS)) == 2
    for one in backends:
        one.close()


def test_limiters_of_several_processes_share_their_limit(make_backend: Callable[[], DisqueBackend]) -> None:
    with make_backend() as one, make_backend() as other:
        for made in (
            lambda backend: ConcurrentRateLimiter(backend, "mutex@example.com", limit=1),
            lambda backend: BucketRateLimiter(backend, "bucket", limit=1, bucket=TTL_MS),
            lambda backend: WindowRateLimiter(backend, "window", limit=1, window=600),
        ):
            first, second = made(one), made(other)
            with first.acquire() as acquired, second.acquire(raise_on_failure=False) as refused:
                assert (acquired, refused) == (True, False)
        with ConcurrentRateLimiter(other, "mutex@example.com", limit=1).acquire(raise_on_failure=False) as acquired:
            assert acquired


def test_a_unit_ends_with_its_time(backend: DisqueBackend) -> None:
    limiter = WindowRateLimiter(backend, "k", limit=1, window=2)
    assert backend.add("k", 1, ttl=500)
    assert not backend.add("k", 1, ttl=500)
    with limiter.acquire() as acquired:
        assert acquired
    deadline_s = time.monotonic() + LONG_S
    while not (backend.add("k", 1, ttl=500) or time.monotonic() > deadline_s):
        time.sleep(0.05)
    while True:
        with limiter.acquire(raise_on_failure=False) as acquired:
            if acquired:
                return
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def test_barrier_lets_all_parties_go_when_the_last_has_come(make_backend: Callable[[], DisqueBackend]) -> None:
    backends = [make_backend() for _ in range(5)]
    barriers = [Barrier(one, "b", ttl=TTL_MS) for one in backends]
    assert barriers[0].create(5)
    assert not barriers[1].create(2)
    assert not backends[0].wait("b@events", 10)
    gone = Calls()

    def go(barrier: Any) -> None:
        assert barrier.wait(timeout=LONG_MS)
        gone.add(barrier)

    threads = [threading.Thread(target=go, args=(barrier,)) for barrier in barriers[:4]]
    for thread in threads:
        thread.start()
    assert gone.seen == []
    assert barriers[4].wait(timeout=LONG_MS)
    gone.wait_for(4)
    assert barriers[0].wait(block=False)
    for thread in threads:
        thread.join()
    for one in backends:
        one.close()


def test_callback_of_a_group_runs_once_after_its_last_message(broker: DisqueBroker, backend: DisqueBackend) -> None:
    broker.add_middleware(GroupCallbacks(backend))
    calls = Calls()
    work = actor(broker, calls.add, actor_name="work")
    done = actor(broker, calls.add, actor_name="done")
    dramatiq.set_broker(broker)
    together = group([work.message(number) for number in range(20)], broker=broker)
    together.add_completion_callback(done.message("done"))
    with worker(broker):
        together.run()
        assert calls.wait_for(21)[-1] == "done"
        broker.join("default", timeout=LONG_MS)
    assert len(calls.seen) == 21


def test_counters_continue_from_zero_at_another_node_when_their_home_dies(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with (
        RealCluster(tmp_path_factory.mktemp("limits"), 3) as cluster,
        DisqueBackend(nodes=[node.address for node in cluster.nodes]) as backend,
    ):
        keys = [f"k{number}" for number in range(12)]
        assert all(backend.add(key, 1, TTL_MS) for key in keys)
        counts = [node.call("QSCAN", 0, "COUNT", 100)[1] for node in cluster.nodes]
        lost = {name.decode().partition(":")[2] for name in counts[0]}
        assert sum(map(len, counts)) == len(keys)
        cluster.nodes[0].kill()
        assert {key for key in keys if backend.add(key, 1, TTL_MS)} == lost
