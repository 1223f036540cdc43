"""A channel of kombu: queues, exchanges, publishing and consuming by commands of the broker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from queue import Empty
from typing import Any, Final, Protocol

from amqp.protocol import queue_declare_ok_t
from kombu.transport import virtual

from disqued.client import Client, NoPermission, ResponseError
from disqued.kombu import envelope
from disqued.kombu.bindings import Binding, Bindings
from disqued.kombu.fetching import Fetcher
from disqued.kombu.leases import Leases, log
from disqued.kombu.options import TransportOptions
from disqued.kombu.placing import add_somewhere
from disqued.kombu.publishing import PUBLICATION, JobOptions, Publication, job_options, publication_of
from disqued.kombu.qos import QoS
from disqued.kombu.scheduled import complete

QUEUES_PER_COMMAND: Final = 100
"""The most queues that one ADDTO takes."""

MANY: Final = 100
"""How many messages to fetch ahead for a consumer that does not acknowledge."""


class Carrier(Protocol):
    """The connection, as its channels see it."""

    options: TransportOptions
    leases: Leases
    bindings: Bindings
    cluster_size: int
    temporary_queues: set[str]
    """Queues that end with their consumer, as this process has declared them."""

    def had_room(self) -> None:
        """Wake the thread that waits for messages."""

    def callback_for(self, queue: str) -> Callable[[Any], object] | None:
        """Return the consumer of a queue."""


class Channel(virtual.Channel):
    """One channel: a pending fetch, a prefetch count, and unacknowledged messages of its own."""

    QoS = QoS
    supports_fanout = True
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
        chosen = self._options_for(message, publication)
        if self._carrier.bindings.is_temporary(queue):
            self._put_at_most_once([queue], envelope.encode(message), chosen)
            return
        add = partial(
            self.client.add,
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
            after=chosen.after,
            otherwise="run" if chosen.after else None,
        )
        add_somewhere(self.client, add, self.options.publish_patience)

    def _options_for(self, message: envelope.Message, publication: Publication) -> JobOptions:
        return job_options(message, publication.began_s, self.options, self._carrier.cluster_size)

    def _put_fanout(self, exchange: str, message: envelope.Message, routing_key: str, **_kwargs: Any) -> None:
        bindings = self._carrier.bindings
        queues = self._lookup(exchange, routing_key)
        temporary = [queue for queue in queues if bindings.is_temporary(queue)]
        for queue in queues:
            if queue not in temporary:
                self._put(queue, message)
        content = envelope.encode(message)
        chosen = self._options_for(message, publication_of(message))
        for first in range(0, len(temporary), QUEUES_PER_COMMAND):
            self._put_at_most_once(temporary[first : first + QUEUES_PER_COMMAND], content, chosen)

    def _put_at_most_once(self, queues: Sequence[str], content: bytes, chosen: JobOptions) -> None:
        """Add a message to temporary queues: one copy each, which ends with its consumer."""
        results = self.client.add_to(
            queues,
            content,
            replicate=1,
            retry_s=0,
            ttl_s=min(chosen.ttl_s, self.options.fanout_ttl + (chosen.delay_s or 0)),
            delay_s=chosen.delay_s,
            priority=chosen.priority,
        )
        for queue, result in zip(queues, results, strict=True):
            if isinstance(result, ResponseError):
                log.warning("message was not added queue=%r error=%r", queue, str(result))

    @property
    def _carrier(self) -> Carrier:
        if self.connection is None:
            raise RuntimeError("the channel is closed")
        return self.connection

    # Routing.

    def _lookup(self, exchange: str, routing_key: str, default: str | None = None) -> list[str]:  # noqa: ARG002 - theirs
        """Return the queues that get a message, as this process and the others have bound them.

        Remote control and replies must not miss a queue that was bound just now: bindings are read for each message to
        a fanout exchange, and if no queue of a direct one is known. Events may miss it for a moment.
        """
        if not exchange:
            return [routing_key]
        kind = self.typeof(exchange)
        longest_s = 0.0 if kind.type == "fanout" else self.options.bindings_cache
        found = self._bound(kind, exchange, routing_key, longest_s)
        if kind.type == "direct" and not found:
            found = self._bound(kind, exchange, routing_key, 0.0) or ([exchange] if exchange == routing_key else [])
        return found

    def _bound(self, kind: Any, exchange: str, routing_key: str, longest_s: float) -> list[str]:
        table = list(self.state.exchanges.get(exchange, {}).get("table", ()))
        table += [
            kind.prepare_bind(binding.queue, exchange, binding.routing_key, None)
            for binding in self._carrier.bindings.of(exchange, longest_s)
        ]
        return sorted(kind.lookup(table, exchange, routing_key, None))

    def _new_queue(self, queue: str, **kwargs: Any) -> None:
        expires = "x-expires" in (kwargs.get("arguments") or {})
        if expires or kwargs.get("auto_delete") or kwargs.get("exclusive"):
            self._carrier.temporary_queues.add(queue)

    def _queue_bind(self, exchange: str, routing_key: str, _pattern: str | None, queue: str) -> None:
        temporary = queue in self._carrier.temporary_queues
        usual = queue == exchange == routing_key and self.typeof(exchange).type == "direct"
        if temporary or not usual:
            self._carrier.bindings.declare(Binding(exchange, queue, routing_key or "", temporary))

    def _unbind(self, queue: str) -> None:
        self.state.queue_bindings_delete(queue)
        for exchange in self.state.exchanges.values():
            exchange["table"][:] = [row for row in exchange["table"] if row[2] != queue]
        self._carrier.bindings.withdraw(queue)

    def queue_unbind(self, queue: str, exchange: str | None = None, routing_key: str = "", **kwargs: Any) -> None:
        """Bind the queue to the exchange no more, nor to others that other processes know of."""
        super().queue_unbind(queue, exchange, routing_key, **kwargs)
        self._carrier.bindings.withdraw(queue)

    def queue_delete(self, queue: str, if_unused: bool = False, if_empty: bool = False, **_kwargs: Any) -> None:  # noqa: ARG002 - theirs
        """Unbind the queue and delete its messages. Those of a temporary queue expire."""
        if if_empty and self._size(queue):
            return
        self._unbind(queue)
        if queue in self._carrier.temporary_queues:
            self._carrier.temporary_queues.discard(queue)
        else:
            self._purge(queue)

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
        if queue in self._carrier.temporary_queues:
            self._unbind(queue)

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
        message = complete(envelope.decode(job), job, self.client)
        if job.queue in self._without_ack:
            self.leases.acknowledge(job.id)
        callback(message)
        return True

    def _get(self, queue: str, timeout: float | None = None) -> envelope.Message:  # noqa: ARG002 - theirs
        jobs = self.client.get(queue, nohang=True, with_counters=True, with_requeue=True)
        if not jobs:
            raise Empty
        self.leases.hold(jobs)
        return complete(envelope.decode(jobs[0]), jobs[0], self.client)

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
