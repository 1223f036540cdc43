"""A consumer of the tests, and waiting."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from kombu import Queue

from disqued.testing.processes import wait_until
from support.celeryworker import PATIENCE_S


def until(condition: Callable[[], object], what: str) -> None:
    wait_until(condition, what, str, PATIENCE_S)


class Messages:
    """A consumer that keeps what it receives."""

    def __init__(self, connection: Any, *queues: Queue, prefetch: int = 0, no_ack: bool = False) -> None:
        self.connection = connection
        self.received: list[Any] = []
        self.consumer = connection.Consumer(list(queues), on_message=self._receive, no_ack=no_ack)
        if prefetch:
            self.consumer.qos(prefetch_count=prefetch)
        self.consumer.consume()

    def _receive(self, message: Any) -> None:
        self.received.append(message)

    def take(self, count: int, *, keep: bool = False) -> list[Any]:
        """Wait until so many messages have arrived, and return them."""
        deadline_s = time.monotonic() + PATIENCE_S
        while len(self.received) < count:
            assert time.monotonic() < deadline_s, f"{len(self.received)} of {count} messages"
            self.drain(1)
        found = list(self.received)
        if not keep:
            self.received.clear()
        return found

    def drain(self, timeout_s: float) -> None:
        try:
            self.connection.drain_events(timeout=timeout_s)
        except TimeoutError:
            return

    def stays_empty(self) -> bool:
        """Whether nothing arrives while there is every opportunity."""
        self.drain(0.3)
        return not self.received
