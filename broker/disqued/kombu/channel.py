"""A channel of kombu: queues, exchanges, publishing and consuming by commands of the broker."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from queue import Empty
from typing import Any, Final, Protocol

from amqp.protocol import queue_declare_ok_t
from kombu.transport import virtual

from disqued.client import Client, NoPermission
from disqued.kombu import envelope
from disqued.kombu.fetching import Fetcher
from disqued.kombu.leases import Leases
from disqued.kombu.options import TransportOptions
from disqued.kombu.publishing import PUBLICATION, Publication, job_options, publication_of
from disqued.kombu.qos import QoS

MANY: Final = 100
"""How many messages to fetch ahead for a consumer that does not acknowledge."""


class Carrier(Protocol):
    """The connection, as its channels see it."""

    options: TransportOptions
    leases: Leases
    cluster_size: int

    def had_room(self) -> None:
        """Wake the thread that waits for messages."""

    def callback_for(self, queue: str) -> Callable[[Any], object] | None:
        """Return the consumer of a queue."""


class Channel(virtual.Channel):
    """One channel: a pending fetch, a prefetch count, and unacknowledged messages of its own."""

    QoS = QoS
    from_transport_options = ()
    connection: Carrier | None

    def __init__(self, connection: Carrier, **kwargs: Any) -> None:
        self.options: TransportOptions = connection.options
        self.leases: Leases = connection.leases
        self.had_room: Callable[[], None] = connection.had_room
        self._fetcher = Fetcher(self.client, self.leases, self.options)
        self._without_ack: set[str] = set()
        super().__init__(connection, **kwargs)

    @property
    def client(self) -> Client:
        """The client of the connection."""
        return self.leases.client

    @property
    def fetcher(self) -> Fetcher:
        """The pending fetch."""
        return self._fetcher

    def forget(self) -> None:
        """Begin without consumers and messages, in a child process."""
        self._consumers.clear()
        self._active_queues.clear()
        self._fetcher.forget(self.client)
        if self._qos is not None:
            self._qos.forget()

    # Publishing.

    def prepare_message(
        self,
        body: Any,
        priority: int | None = None,
        content_type: str | None = None,
        content_encoding: str | None = None,
        headers: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
    ) -> envelope.Message:
        """Build a message; kombu does so again, with the same properties, when it publishes again after an error."""
        properties = {} if properties is None else properties
        properties.setdefault(PUBLICATION, Publication())
        message: envelope.Message = super().prepare_message(
            body, priority, content_type, content_encoding, headers, properties
        )
        return message

    def basic_publish(self, message: envelope.Message, exchange: str, routing_key: str, **kwargs: Any) -> None:
        """Publish a message. Doing so again after an error adds nothing to the queues that it has reached."""
        properties = message["properties"]
        properties.setdefault(PUBLICATION, Publication())
        super().basic_publish(message, exchange, routing_key, **kwargs)
        del properties[PUBLICATION]

    def encode_body(self, body: Any, encoding: str | None = None) -> tuple[str, str]:  # noqa: ARG002 - theirs
        """Return the body as text, and its encoding."""
        return envelope.encode_body(body)

    def decode_body(self, body: str, encoding: str | None = None) -> str | bytes:
        """Reverse `encode_body`."""
        return envelope.decode_body(body, encoding)

    def _put(self, queue: str, message: envelope.Message, **_kwargs: Any) -> None:
        publication = publication_of(message)
        chosen = job_options(message, publication.began_s, self.options, self._carrier.cluster_size)
        self.client.add(
            queue,
            envelope.encode(message),
            timeout_ms=round(self.options.publish_timeout * 1000),
            job_id=publication.job_id(queue),
            retry_s=chosen.retry_s,
            ttl_s=chosen.ttl_s,
            delay_s=chosen.delay_s,
            priority=chosen.priority,
            replicate=chosen.replicate,
            sync=chosen.sync,
        )

    @property
    def _carrier(self) -> Carrier:
        if self.connection is None:
            raise RuntimeError("the channel is closed")
        return self.connection

    # Consuming.

    def basic_consume(
        self, queue: str, no_ack: bool, callback: Callable[[Any], object], consumer_tag: str, **kwargs: Any
    ) -> None:
        """Deliver the messages of a queue from now on."""
        if no_ack:
            self._without_ack.add(queue)
        super().basic_consume(queue, no_ack, callback, consumer_tag, **kwargs)
        self._fetcher.update(self._active_queues)
        self.had_room()

    def basic_cancel(self, consumer_tag: str) -> None:
        """Deliver no more messages of the consumer's queue. Those fetched ahead return to it."""
        queue = self._tag_to_queue.get(consumer_tag)
        super().basic_cancel(consumer_tag)
        if queue is None or queue in self._active_queues:
            return
        self._without_ack.discard(queue)
        self._fetcher.update(self._active_queues)
        self._fetcher.interrupt()
        self._fetcher.return_fetched([queue])

    def _reset_cycle(self) -> None:
        """Nothing: the fetcher looks into all queues at once."""

    def ask(self, *, ahead: bool) -> bool:
        """Have a fetch pending if there is room, `ahead` for as many messages as there is. False: nothing to wait for.

        Raises:
            ConnectionFailed: no node can be reached.
        """
        if not self._active_queues:
            return False
        room = self.qos.room(self.options.prefetch_limit) - len(self._fetcher.fetched)
        if room > 0:
            queues: Iterable[str] = self._active_queues
            count = room if ahead or self.qos.prefetch_count else 1
        else:
            queues, count = self._without_ack, 1
        names = list(queues)
        if all(queue in self._without_ack for queue in names):
            count = MANY
        if len(self._fetcher.fetched) >= self.options.prefetch_limit:
            return self._fetcher.is_pending
        if self._fetcher.is_pending and room <= 0:
            return True  # it was sent while there was room
        self._fetcher.fetch(names, count)
        return self._fetcher.is_pending

    def deliver_one(self) -> bool:
        """Pass one fetched message to its consumer; False if there is none."""
        fetched = self._fetcher.fetched
        if self.closed or not fetched:
            return False
        job = fetched.popleft()
        callback = self._carrier.callback_for(job.queue)
        if callback is None:
            self.leases.give_back(job.id)
            return True
        message = envelope.decode(job)
        if job.queue in self._without_ack:
            self.leases.acknowledge(job.id)
        callback(message)
        return True

    def _get(self, queue: str, timeout: float | None = None) -> envelope.Message:  # noqa: ARG002 - theirs
        jobs = self.client.get(queue, nohang=True, with_counters=True, with_requeue=True)
        if not jobs:
            raise Empty
        self.leases.hold(jobs)
        return envelope.decode(jobs[0])

    def basic_get(self, queue: str, no_ack: bool = False, **kwargs: Any) -> Any:
        """Return a message of the queue, None if there is none."""
        message = super().basic_get(queue, no_ack=no_ack, **kwargs)
        if message is not None and no_ack:
            self.leases.acknowledge(message.delivery_tag)
        return message

    def basic_recover(self, requeue: bool = False) -> None:
        """Return all unacknowledged messages to their queues."""
        if not requeue:
            raise NotImplementedError("recover(requeue=False) is not supported")
        self.qos.restore_unacked()

    def close(self) -> None:
        """Cancel the consumers and return what is unacknowledged."""
        if not self.closed:
            self._active_queues.clear()
            self._fetcher.interrupt()
            self._fetcher.return_fetched()
        super().close()

    # Queues.

    def queue_declare(self, queue: str | None = None, passive: bool = False, **kwargs: Any) -> Any:
        """Return the name of the queue and how many messages it has: in the cluster if passive, else on this node."""
        name = queue or f"amq.gen-{self._next_delivery_tag()}"
        self._new_queue(name, **kwargs)
        return queue_declare_ok_t(name, self._size(name) if passive else self._length_here(name), 0)

    def _length_here(self, queue: str) -> int:
        try:
            return self.client.qlen(queue)
        except NoPermission:  # a user that may only publish
            return 0

    def _size(self, queue: str) -> int:
        """How many messages are queued in the cluster; those that wait for their ETA are not counted."""
        return self.client.qcount(queue).queued

    def _purge(self, queue: str) -> int:
        """Delete all messages of the queue that no worker has, also those that wait for their ETA."""
        return self.client.qpurge(queue).deleted

    def _restore(self, message: Any) -> None:
        self.leases.give_back(message.delivery_tag)
