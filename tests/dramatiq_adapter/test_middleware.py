"""Middleware of Dramatiq that its own tests in the source distribution leave out, with real nodes.

Age and time limits, callbacks, pipelines, retries and the current message are in `suites/test_dramatiq.py`, group
callbacks in `test_rate_limits.py`, and Prometheus in `test_faults.py`.
"""

from __future__ import annotations

import asyncio
import threading
import time

from dramatiq.middleware import AsyncIO

from disqued.dramatiq import DisqueBroker
from dramatiq_adapter.workers import LONG_MS, LONG_S, Calls, actor, worker


def test_async_actors_run_and_actors_that_a_stop_interrupts_run_again(broker: DisqueBroker) -> None:
    calls, began, may_end = Calls(), threading.Event(), threading.Event()
    broker.add_middleware(AsyncIO())

    async def greet(name: str) -> None:
        await asyncio.sleep(0)
        calls.add(name)

    def work() -> None:
        began.set()
        while not may_end.is_set():
            time.sleep(0.01)
        calls.add("worked")

    with worker(broker):
        actor(broker, greet).send("hello")
        actor(broker, work, notify_shutdown=True, min_backoff=1, max_backoff=2).send()
        assert calls.wait_for(1) == ["hello"]
        assert began.wait(LONG_S)
    assert calls.seen == ["hello"]
    may_end.set()
    with worker(broker):
        broker.join("default", timeout=LONG_MS)
    assert calls.seen == ["hello", "worked"]
