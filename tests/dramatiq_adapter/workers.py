"""What the tests of Dramatiq share: workers in this process, and reading what actors said."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import dramatiq
from dramatiq import Actor, Worker

from disqued.client import JobDetails
from disqued.dramatiq import DisqueBroker

LONG_S: Final = 60.0
LONG_MS: Final = 60_000
"""Longer than any of these scenarios takes, on a busy machine too."""


def actor(broker: DisqueBroker, function: Callable[..., Any], **options: Any) -> Actor[..., Any]:
    """An actor of a broker."""
    made: Actor[..., Any] = dramatiq.actor(broker=broker, **options)(function)
    return made


@contextmanager
def worker(broker: DisqueBroker, threads: int = 4) -> Iterator[Worker]:
    """A worker in this process, stopped at the end."""
    running = Worker(broker, worker_timeout=100, worker_threads=threads)
    running.start()
    try:
        yield running
    finally:
        running.stop()


def dead_letter(broker: DisqueBroker, queue: str = "default", *, keep: bool = True) -> JobDetails:
    """What is known about the next dead letter of a queue; with `keep` it stays there."""
    name = f"{broker.job_queue(queue)}.dead"
    (job,) = broker.client.get(name, timeout_ms=LONG_MS)
    details = broker.client.show(job.id)
    assert details is not None
    if keep:
        broker.client.nack(job.id, uncounted=True)
    else:
        broker.client.ack(job.id)
    return details


class Calls:
    """What actors were called with, in the order of the calls. Threads can wait for them."""

    def __init__(self) -> None:
        self._seen: list[Any] = []
        self._changed = threading.Condition()

    def add(self, value: Any) -> None:
        with self._changed:
            self._seen.append(value)
            self._changed.notify_all()

    def wait_for(self, count: int) -> list[Any]:
        """The first `count` calls."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self._seen) >= count, LONG_S), self._seen
            return self._seen[:count]

    @property
    def seen(self) -> list[Any]:
        with self._changed:
            return list(self._seen)
