"""The broker that Dramatiq's tests get, whichever they ask for."""

from __future__ import annotations

import os
import sys
import types
from collections import defaultdict
from typing import Any, Final

import dramatiq.brokers.redis
from dramatiq.middleware import Middleware

from disqued.client import Client
from disqued.dramatiq import DisqueBroker

NODES: Final = "DISQUE_NODES"
"""The environment variable with the addresses of the nodes."""


def nodes() -> list[str]:
    """The addresses of the nodes."""
    return os.environ[NODES].split(",")


class _Queue:
    """What tests do with a queue of Dramatiq's StubBroker, done with the queue of the cluster."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name

    def put(self, body: bytes) -> None:
        self._client.add(self._name, body)

    def get(self, timeout: float) -> bytes:
        (job,) = self._client.get(self._name, timeout_ms=int(timeout * 1000))
        self._client.ack(job.id)
        return job.body

    def qsize(self) -> int:
        return self._client.qcount(self._name).queued

    @property
    def unfinished_tasks(self) -> int:
        count = self._client.qcount(self._name)
        return count.queued + count.leased


class _Queues(set[str]):
    """The names of the queues. By a name, the queue itself."""

    def __init__(self, broker: SuiteBroker) -> None:
        super().__init__()
        self._broker = broker

    def __getitem__(self, name: str) -> _Queue:
        return _Queue(self._broker.client, self._broker.job_queue(name))


class SuiteBroker(DisqueBroker):
    """This broker, with what tests use of others: arguments that are ignored, and what StubBroker remembers."""

    def __init__(self, *, middleware: list[Middleware] | None = None, namespace: str = "suite", **_: Any) -> None:
        super().__init__(nodes=nodes(), middleware=middleware, namespace=namespace)
        self.queues: set[str] = _Queues(self)
        self.dead_letters_by_queue: defaultdict[str, list[Any]] = defaultdict(list)
        self.fail_fast = True
        """Whether `join` raises the exceptions of actors."""
        self._errors: list[BaseException] = []

    @property
    def dead_letters(self) -> list[Any]:
        """The messages that workers of this process made dead letters."""
        return [message for messages in self.dead_letters_by_queue.values() for message in messages]

    def emit_before(self, signal: str, *args: Any, **kwargs: Any) -> None:
        if signal == "nack":
            (message,) = args
            self.dead_letters_by_queue[message.queue_name].append(message)
            self._errors.append(message._exception or Exception("failed"))
        super().emit_before(signal, *args, **kwargs)

    def join(self, queue_name: str, *, timeout: int | None = None, fail_fast: bool | None = None, **_: Any) -> None:
        """Wait as this broker does, and then raise the exception of a message that failed, as StubBroker does."""
        super().join(queue_name, timeout=timeout)
        if (self.fail_fast if fail_fast is None else fail_fast) and self._errors:
            raise self._errors[0]

    def flush_all(self) -> None:
        super().flush_all()
        for messages in self.dead_letters_by_queue.values():
            messages.clear()


def replace() -> None:
    """Have the modules of other brokers contain this one. Programs that import the tests call it first."""
    dramatiq.brokers.redis.RedisBroker = SuiteBroker  # type: ignore[assignment,misc]
    module = types.ModuleType("dramatiq.brokers.rabbitmq")
    module.RabbitmqBroker = SuiteBroker  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
