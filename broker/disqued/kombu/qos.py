"""The unacknowledged messages of a channel, and how many it may have."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from kombu.transport import virtual

from disqued.kombu.leases import Leases


class QoS(virtual.QoS):
    """Acknowledgements by any thread; kombu's own counts them when the consuming thread looks."""

    def __init__(self, channel: Any, prefetch_count: int = 0) -> None:
        super().__init__(channel, prefetch_count)
        self.prefetch_count: int
        self._leases: Leases = channel.leases
        self._had_room: Callable[[], None] = channel.had_room
        self._ending = threading.Lock()

    def room(self, most: int) -> int:
        """How many more messages the channel may have, at most so many."""
        if not self.prefetch_count:
            return most
        return min(most, max(0, self.prefetch_count - len(self)))

    def __len__(self) -> int:
        return len(self._delivered)

    def __bool__(self) -> bool:
        return True

    def can_consume(self) -> bool:
        """Whether another message can be fetched."""
        return self.room(1) > 0

    def append(self, message: Any, delivery_tag: str) -> None:
        """Note a message that was delivered."""
        self._delivered[delivery_tag] = message

    def ack(self, delivery_tag: str) -> None:
        """The message is done.

        This is sent even if the message was returned when its connection was lost: the work is done.
        """
        self._forget(delivery_tag)
        self._leases.acknowledge(delivery_tag)
        self._had_room()

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Return the message to its queue as a failed attempt, or make it a dead letter.

        Celery does the first with a task that lost its process: the queue's `limit` then ends what would never end.
        """
        if self._forget(delivery_tag):
            if requeue:
                self._leases.fail(delivery_tag)
            else:
                self._leases.reject(delivery_tag)
            self._leases.flush()  # rare, and the next fetch may be for this message
            self._had_room()

    def _forget(self, delivery_tag: str) -> bool:
        with self._ending:
            return self._delivered.pop(delivery_tag, None) is not None

    def restore_unacked(self) -> list[Any]:
        """Return all unacknowledged messages to their queues."""
        for tag in list(self._delivered):
            if self._forget(tag):
                self._leases.give_back(tag)
        return []

    def restore_unacked_once(self, stderr: object = None) -> None:  # noqa: ARG002 - kombu's interface
        """Return them when the channel closes or the program ends, but not those of a parent process."""
        self._on_collect.cancel()
        if self._leases.owner == os.getpid():
            self.restore_unacked()
            self._leases.flush()
        self.forget()

    def forget(self) -> None:
        """Drop all messages and tell the broker nothing."""
        self._delivered.clear()
