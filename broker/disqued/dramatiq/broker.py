"""The broker: declares queues, adds messages, makes consumers, and empties queues and waits for them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from typing import Any, Final

from dramatiq.broker import Broker
from dramatiq.common import current_millis, q_name
from dramatiq.errors import QueueJoinTimeout, QueueNotFound
from dramatiq.message import Message
from dramatiq.middleware import Middleware

from disqued.client import Client, calls
from disqued.client.session import Session
from disqued.client.transport import run_now
from disqued.dramatiq.backlog import Backlog
from disqued.dramatiq.connection import PerProcess, client_maker, connection_errors
from disqued.dramatiq.consumer import DisqueConsumer
from disqued.dramatiq.keeper import Keeper
from disqued.dramatiq.publisher import JobOptions, Publisher

HEARTBEAT_TIMEOUT_MS: Final = 60_000
MESSAGE_TTL_MS: Final = 30 * 24 * 3600 * 1000
ADD_TIMEOUT_MS: Final = 5000
JOIN_INTERVAL_MS: Final = 100

_MOST_CONNECTIONS: Final = 1024
"""Each queue that a process consumes waits on a connection of its own."""
_PRIORITY: Final = "broker_priority"
"""The option of actors and messages that Dramatiq's RabbitmqBroker knows: a higher one is delivered first."""


class _Connections:
    """What a process needs for a broker: its client, what adds messages, and the threads for those of its workers."""

    def __init__(self, client: Client, options: JobOptions) -> None:
        self.client = client
        self.session = client.session()
        self.publisher = Publisher(self.session, options)
        self.keeper = Keeper()

    def new_session(self) -> Session:
        """A session for a consumer, which knows all nodes."""
        if self.session.node_id is None:
            run_now(self.session.perform(calls.hello()))
        return self.session.sibling()

    def close(self) -> None:
        """Give back all messages and close all connections."""
        self.keeper.close()
        self.client.close()
        self.session.drop_idle()


class DisqueBroker(Broker):
    """A broker for Dramatiq on a cluster of this broker.

    Delayed messages and dead letters wait in the cluster: there are no delay queues, and workers keep no message in
    memory that is not due. A message is delivered again if its worker dies, and never because its actor takes long.
    """

    def __init__(
        self,
        *,
        url: str | Sequence[str] | None = None,
        middleware: list[Middleware] | None = None,
        namespace: str = "",
        heartbeat_timeout: int = HEARTBEAT_TIMEOUT_MS,
        message_ttl: int = MESSAGE_TTL_MS,
        replicate: int | None = None,
        sync: int | None = None,
        add_timeout: int = ADD_TIMEOUT_MS,
        **options: Any,
    ) -> None:
        """Configure the broker; the first message connects. Times are in milliseconds, as in all of Dramatiq.

        Args:
            url: `disque://[user:password@]host[:port][,host[:port]...]`, `disques://` for TLS, or several such URLs.
                The node at `localhost:7711` by default.
            middleware: As for every broker.
            namespace: A prefix for the names of all queues, which a colon separates from them.
            heartbeat_timeout: How long after the last sign of life of a worker its messages are delivered again.
            message_ttl: How long a message may wait, in addition to its delay, before it is dropped.
            replicate: How many nodes keep each message. By default what is set for the queue, or three nodes if the
                cluster has as many.
            sync: How many of them must have it before `enqueue` returns. Two by default, so that a message survives the
                loss of a node, and can be added while one of three nodes is away.
            add_timeout: How long `enqueue` waits for them.
            options: Arguments of `disqued.client.Client`: `user`, `password`, `tls`, `timeout_s`, `backoff` and others;
                `nodes` gives addresses in place of `url`.

        Raises:
            ValueError: an option or a URL is invalid.
        """
        super().__init__(middleware=middleware)
        if heartbeat_timeout < 1000 or message_ttl < 2 * heartbeat_timeout:
            raise ValueError("heartbeat_timeout must be at least 1000 ms, and message_ttl at least twice as long")
        self.queues: set[str] = set()
        self.actor_options.add(_PRIORITY)
        self.namespace = namespace
        how = JobOptions(
            replicate=replicate,
            sync=sync,
            retry_s=round(heartbeat_timeout / 1000),
            ttl_s=round(message_ttl / 1000),
            timeout_ms=add_timeout,
        )
        make = client_maker(url, {"max_connections": _MOST_CONNECTIONS, **options})
        self._connections = PerProcess(lambda: _Connections(make(), how))

    @property
    def client(self) -> Client:
        """The client of this process, for everything else that the cluster can do."""
        return self._connections.here.client

    def job_queue(self, queue_name: str) -> str:
        """Return the name of a queue in the cluster. With `.dead` behind it, it is that of the queue's dead letters."""
        return f"{self.namespace}:{queue_name}" if self.namespace else queue_name

    def close(self) -> None:
        """Give back the messages that workers of this process still have, and close all connections."""
        self._connections.here.close()

    # Queues.

    def declare_queue(self, queue_name: str) -> None:
        """Make a queue known to the workers of this process. The cluster need not know it before its first message."""
        if queue_name not in self.queues:
            self.emit_before("declare_queue", queue_name)
            self.queues.add(queue_name)
            self.emit_after("declare_queue", queue_name)

    def get_declared_queues(self) -> set[str]:
        """Return the names of the queues that were declared."""
        return self.queues.copy()

    # Messages.

    def enqueue(self, message: Message[Any], *, delay: int | None = None) -> Message[Any]:
        """Add a message to its queue, to be delivered after `delay` ms. Returns it when enough nodes have it.

        The cluster keeps a delayed message, so its queue is the same, and it has no `eta`. A message from the delay
        queue of another broker is added with the rest of its delay.

        Raises:
            BrokerConnectionError: no node can be reached, or none replied; the message may have been added.
            DisqueError: a node refused the message: `QueueFull`, `OutOfMemory`, `NotReplicated` and others.
        """
        message, delay = _for_cluster(message, delay)
        self.logger.debug("Enqueueing message %r on queue %r.", message.message_id, message.queue_name)
        self.emit_before("enqueue", message, delay)
        with connection_errors():
            self._connections.here.publisher.add(
                self.job_queue(message.queue_name),
                message.encode(),
                delay_ms=max(delay or 0, 0),
                priority=self._priority(message),
            )
        self.emit_after("enqueue", message, delay)
        return message

    def _priority(self, message: Message[Any]) -> int:
        """The priority of the job: a higher one is delivered first, while a lower one of an actor is."""
        actor = self.actors.get(message.actor_name)
        given = message.options.get(_PRIORITY)
        if given is None and actor is not None:
            given = actor.options.get(_PRIORITY, -actor.priority)
        return int(given or 0)

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 5000) -> DisqueConsumer:
        """Return a consumer of a queue, for at most `prefetch` messages at once, that waits up to `timeout` ms for one.

        Raises:
            QueueNotFound: the queue was not declared.
        """
        self._require_declared(queue_name)
        connections = self._connections.here
        with connection_errors():
            session = connections.new_session()
        return DisqueConsumer(
            session,
            connections.keeper,
            queue_name,
            self.job_queue(queue_name),
            prefetch=prefetch,
            timeout_ms=timeout,
        )

    def _require_declared(self, queue_name: str) -> None:
        if queue_name not in self.queues:
            raise QueueNotFound(queue_name)

    # Whole queues.

    def flush(self, queue_name: str) -> None:
        """Drop the messages of a queue that no worker has, delayed ones and dead letters included.

        The time up to which messages are dropped is that of one node, the same one to which this process adds messages.
        """
        queue = self.job_queue(queue_name)
        with connection_errors():
            for name in (queue, f"{queue}.dead"):
                run_now(self._connections.here.session.perform(calls.qpurge(name)))

    def flush_all(self) -> None:
        """Drop the messages of all declared queues as `flush` does."""
        for queue_name in self.queues:
            self.flush(queue_name)

    def get_queue_message_counts(self, queue_name: str) -> tuple[int, int, int]:
        """Return how many messages of a queue are due, delayed, and dead letters; up to a second old."""
        queue = self.job_queue(queue_name)
        with connection_errors():
            here, dead = self.client.qcount(queue), self.client.qcount(f"{queue}.dead")
        return here.queued, here.delayed, dead.dead

    def join(self, queue_name: str, *, interval: int = JOIN_INTERVAL_MS, timeout: int | None = None) -> None:
        """Wait until a queue has no messages: none is due, delayed, or with a worker. Dead letters do not count.

        Looks every `interval` ms at all nodes, for `timeout` ms at most. It is for tests.

        Raises:
            QueueNotFound: the queue was not declared.
            QueueJoinTimeout: messages are left after `timeout` ms.
        """
        self._require_declared(queue_name)
        deadline_s = None if timeout is None else time.monotonic() + timeout / 1000
        look = Backlog(self._connections.here.session, self.job_queue(queue_name))
        with closing(look) as backlog, connection_errors():
            while not backlog.is_empty():
                if deadline_s is not None and time.monotonic() + interval / 1000 > deadline_s:
                    raise QueueJoinTimeout(queue_name)
                time.sleep(interval / 1000)


def _for_cluster(message: Message[Any], delay: int | None) -> tuple[Message[Any], int | None]:
    """Return a message without the marks of a delay queue, which it has if it comes from another broker."""
    message = message.copy(queue_name=q_name(message.queue_name))
    eta = message.options.pop("eta", None)
    if delay is None and isinstance(eta, int | float):
        delay = round(eta) - current_millis()
    return message, delay
