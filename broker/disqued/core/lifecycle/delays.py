"""How many jobs wait on one node for the end of their delay, by queue: those jobs are in no queue that counts them."""

from __future__ import annotations

from mypy_extensions import i64


class Delays:
    """The counts of one node."""

    def __init__(self) -> None:
        self.count: i64 = 0
        self._by_queue: dict[bytes, int] = {}
        """Only queues that have such jobs."""

    def of(self, queue: bytes) -> int:
        """How many jobs of a queue wait."""
        return self._by_queue.get(queue, 0)

    def begin(self, queue: bytes) -> None:
        """Count a job that waits from now on."""
        self.count += 1
        self._by_queue[queue] = self._by_queue.get(queue, 0) + 1

    def end(self, queue: bytes) -> None:
        """Count a job no longer."""
        self.count -= 1
        left = self._by_queue[queue] - 1
        if left > 0:
            self._by_queue[queue] = left
        else:
            del self._by_queue[queue]
