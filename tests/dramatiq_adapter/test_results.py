"""The result backend with three real nodes. Dramatiq's own tests of results run in `suites/test_dramatiq.py`."""

from __future__ import annotations

from collections.abc import Iterator

import dramatiq
import pytest
from dramatiq import group, pipeline
from dramatiq.results import ResultFailure, ResultMissing, Results, ResultTimeout

from disqued.dramatiq import DisqueBroker
from disqued.dramatiq.results import DisqueBackend
from dramatiq_adapter.workers import LONG_MS, actor, worker
from support.cluster import RealCluster


@pytest.fixture
def backend(nodes: RealCluster, request: pytest.FixtureRequest) -> Iterator[DisqueBackend]:
    with DisqueBackend(nodes=[node.address for node in nodes.nodes], namespace=request.node.name) as backend:
        yield backend


def test_pipelines_and_groups_return_their_results(broker: DisqueBroker, backend: DisqueBackend) -> None:
    broker.add_middleware(Results(backend=backend))
    dramatiq.set_broker(broker)

    def add(one: int, other: int) -> int:
        return one + other

    task = actor(broker, add, store_results=True)
    with worker(broker):
        chain = pipeline([task.message(1, 2), task.message(3), task.message(4)], broker=broker).run()
        assert chain.get_result(block=True, timeout=LONG_MS) == 10
        assert list(chain.get_results()) == [3, 6, 10]
        both = group([task.message(5, 6), pipeline([task.message(7, 8), task.message(9)])], broker=broker).run()
        assert list(both.get_results(block=True, timeout=LONG_MS)) == [11, 24]
        assert both.completed


def test_result_says_what_happened(broker: DisqueBroker, backend: DisqueBackend) -> None:
    broker.add_middleware(Results(backend=backend, store_results=True))

    def work(what: str) -> str | None:
        if what == "fail":
            raise ValueError("no such customer")
        return "x" * 70_000 if what == "much" else None

    task = actor(broker, work, max_retries=0)
    waiting = task.message("nothing")
    with pytest.raises(ResultMissing):
        backend.get_result(waiting)
    with pytest.raises(ResultTimeout):
        backend.get_result(waiting, block=True, timeout=50)
    with worker(broker):
        failed, long = task.send("fail"), task.send("much")
        broker.enqueue(waiting)
        assert backend.get_result(waiting, block=True, timeout=LONG_MS) is None
        with pytest.raises(ResultFailure, match="ValueError: no such customer"):
            backend.get_result(failed, block=True, timeout=LONG_MS)
        with pytest.raises(ResultFailure, match="ResultTooLong: the result has 70002 bytes, and nodes keep 65536"):
            backend.get_result(long, block=True, timeout=LONG_MS)
    backend.store_result(failed, "after a redrive", 60_000)
    backend.store_result(failed, "by a second worker", 60_000)
    assert backend.get_result(failed) == "after a redrive"
