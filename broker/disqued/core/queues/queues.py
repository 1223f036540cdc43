"""All queues of a node, by name and in the order in which they were made.

Queues are scanned in that order. A cursor is the number of the last queue that was returned, and bisection finds it
again. A scan therefore needs no snapshot, returns each queue that stays exactly once, and costs no more than what it
returns. A removed queue leaves a hole in the order; holes are removed when they outnumber the queues.
"""

from __future__ import annotations

from bisect import bisect_right

from mypy_extensions import i64

from disqued.core.queues.queue import Queue, QueueType


class Queues:
    """The queues of one node."""

    def __init__(self, standard: QueueType) -> None:
        self._standard = standard
        """The type of all queues that were not declared."""
        self._declared: dict[bytes, QueueType] = {}
        """The types of queues that were declared, by name."""
        self._some_declared: bool = False
        self._by_name: dict[bytes, Queue] = {}
        self._order: list[Queue | None] = []
        self._numbers: list[int] = []
        self._made: i64 = 0

    def __len__(self) -> int:
        """Number of queues."""
        return len(self._by_name)

    def get(self, name: bytes) -> Queue | None:
        """The queue of that name, or None."""
        return self._by_name.get(name)

    def declare(self, name: bytes, queue_type: QueueType) -> None:
        """Choose the type of a queue that does not exist yet."""
        assert name not in self._by_name
        self._declared[name] = queue_type
        self._some_declared = True

    def type_of(self, name: bytes) -> QueueType:
        """The type of the queue of that name, whether the queue exists now or not."""
        if self._some_declared:
            return self._declared.get(name, self._standard)
        return self._standard

    def get_or_make(self, name: bytes, now_ms: i64) -> Queue:
        """The queue of that name; it is made if it does not exist."""
        queue = self._by_name.get(name)
        if queue is None:
            self._made += 1
            queue = Queue(name, self._made, now_ms, self.type_of(name))
            self._by_name[name] = queue
            self._order.append(queue)
            self._numbers.append(self._made)
        return queue

    def remove(self, queue: Queue) -> None:
        """Remove a queue and its statistics."""
        del self._by_name[queue.name]
        self._order[bisect_right(self._numbers, queue.number) - 1] = None
        if len(self._order) > 64 and len(self._order) > 2 * len(self._by_name):
            self._order = [kept for kept in self._order if kept is not None]
            self._numbers = [kept.number for kept in self._order if kept is not None]

    def scan(self, cursor: int, limit: int) -> tuple[int, list[Queue]]:
        """The next cursor, 0 at the end, and up to `limit` queues after the cursor."""
        at = bisect_right(self._numbers, cursor)
        found: list[Queue] = []
        while at < len(self._order) and len(found) < limit:
            queue = self._order[at]
            if queue is not None:
                found.append(queue)
            at += 1
        return (0 if at >= len(self._order) else self._numbers[at - 1]), found
