"""The connection of kombu to the broker.

Messages arrive over the sockets of pending fetches. With kombu's event loop, the hub watches these sockets: that is the
usual case, Celery's worker. Without it, `drain_events` waits for them with a selector.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, cast
from weakref import WeakSet

from kombu.transport import virtual
from kombu.utils.eventio import ERR, READ, poll

from disqued import __version__
from disqued.client import (
    Backoff,
    Client,
    ClockError,
    ConnectionFailed,
    ConnectionLost,
    Loading,
    NodeLeaving,
    ResponseError,
)
from disqued.client.nodes import DEFAULT_PORT
from disqued.kombu.bindings import Bindings
from disqued.kombu.channel import Channel as DisqueChannel
from disqued.kombu.leases import Leases
from disqued.kombu.nodeclients import NodeClients
from disqued.kombu.options import TransportOptions, parse_options
from disqued.kombu.urls import hide_password, place_of, settle

TRIES: Final = Backoff(first_s=0.05, longest_s=0.5, attempts=3)
"""How often to try all nodes before kombu is told; it then tries again as its own settings say."""

MOST_AT_ONCE: Final = 100
"""How many messages of a channel are delivered in one turn of the event loop."""


class Waker:
    """Ends the wait of the consuming thread when another thread makes room for messages."""

    def __init__(self) -> None:
        self._ends: tuple[socket.socket, socket.socket] | None = None
        self._sleeper = 0

    def fileno(self) -> int:
        """The descriptor to wait for."""
        if self._ends is None:
            self._ends = socket.socketpair()
            for end in self._ends:
                end.setblocking(False)
        return self._ends[0].fileno()

    def expect(self) -> None:
        """The calling thread is about to wait: the next call of another thread wakes it."""
        self._sleeper = threading.get_ident()

    def wake(self) -> None:
        """End the wait, if there is one."""
        if self._ends is not None and self._sleeper not in {0, threading.get_ident()}:
            self._sleeper = 0
            with suppress(OSError):  # full: the thread wakes anyway; or closed
                self._ends[1].send(b"\0")

    def drain(self) -> None:
        """The thread waits no more."""
        self._sleeper = 0
        if self._ends is not None:
            with suppress(OSError):
                self._ends[0].recv(4096)

    def close(self) -> None:
        """Close both ends."""
        if self._ends is not None:
            for end in self._ends:
                end.close()
        self._ends = None


class Transport(virtual.Transport):
    """One connection of kombu: a client, a thread for its jobs, and channels with fetches of their own."""

    Channel = DisqueChannel
    can_parse_url = True
    default_port = DEFAULT_PORT
    driver_type = "disque"
    driver_name = "disqued"
    polling_interval = None

    connection_errors = (ConnectionFailed, ConnectionLost, NodeLeaving, ClockError, Loading, OSError)
    channel_errors = (*virtual.Transport.channel_errors, ResponseError)

    implements = virtual.Transport.implements.extend(
        asynchronous=True, exchange_type=frozenset(["direct", "topic", "fanout"])
    )

    def __init__(self, client: Any, **kwargs: Any) -> None:
        super().__init__(client, **kwargs)
        self._place = place_of(client)
        self.options: TransportOptions = parse_options({**client.transport_options, **self._place.options})
        settle(client, self._place)
        self._connect_timeout_s: float | None = client.connect_timeout or None
        self.waker = Waker()
        self.leases = Leases(self._make_client, self._make_nodes)
        self.bindings = Bindings(self.leases.client, self.leases.nodes)
        self.temporary_queues: set[str] = set()
        self.cluster_size = 1
        self._loop: Any = None
        self._watched: dict[int, DisqueChannel] = {}
        _living.add(self)

    def _make_client(self) -> Client:
        return self._client_of(self._place.nodes, discover=self.options.discover)

    def _client_of(self, nodes: Sequence[str], *, discover: bool) -> Client:
        place = self._place
        return Client(
            nodes,
            user=place.user,
            password=place.password,
            tls=place.tls,
            tls_server_name=place.tls_server_name,
            discover=discover,
            connect_timeout_s=self._connect_timeout_s,
            timeout_s=self.options.socket_timeout,
            backoff=TRIES,
        )

    def _make_nodes(self, client: Client) -> NodeClients:
        discover = self.options.discover
        return NodeClients(client, lambda address: self._client_of([address], discover=False), discover=discover)

    def driver_version(self) -> str:
        """The version of this package."""
        return __version__

    def as_uri(self, uri: str, include_password: bool = False, mask: str = "**") -> str:
        """Return the URL for messages to people."""
        return uri if include_password else hide_password(uri, mask)

    def establish_connection(self) -> Transport:
        """Connect to a node. Raises ConnectionFailed."""
        self.cluster_size = len(self.leases.client.hello().nodes)
        return self

    @property
    def connected(self) -> bool:
        """Whether the connection was not closed; a node that is gone is replaced by another one."""
        return self.client is not None

    def close_connection(self, connection: Transport) -> None:  # noqa: ARG002 - theirs
        """Close all channels, which returns their messages, and send what waits."""
        self._unwatch_all()
        for channel in list(self.channels):
            channel.close()
        self.bindings.close()
        self.leases.close()
        self.leases.client.close()
        self.waker.close()

    def had_room(self) -> None:
        """Wake the thread that waits for messages."""
        self.waker.wake()

    def callback_for(self, queue: str) -> Callable[[Any], object] | None:
        """The consumer of a queue."""
        return cast("Callable[[Any], object] | None", self._callbacks.get(queue))

    # Without an event loop.

    def drain_events(self, connection: Transport, timeout: float | None = None) -> None:  # noqa: ARG002 - theirs
        """Deliver one message, waiting for it up to `timeout` seconds; None without end.

        Raises:
            TimeoutError: none arrived.
        """
        deadline_s = None if timeout is None else time.monotonic() + timeout
        while True:
            if any(channel.deliver_one() for channel in self._in_turn()):
                return
            self.waker.expect()
            asked = [channel for channel in self.channels if channel.ask(ahead=False)]
            left_s = None if deadline_s is None else deadline_s - time.monotonic()
            if left_s is not None and left_s < 0:
                raise TimeoutError("no message arrived")
            for channel in self._wait(asked, left_s):
                channel.fetcher.receive()

    def _in_turn(self) -> list[DisqueChannel]:
        """The channels, each time with another one first."""
        if self.channels:
            self.channels.append(self.channels.pop(0))
        return list(self.channels)

    def _wait(self, asked: list[DisqueChannel], timeout_s: float | None) -> list[DisqueChannel]:
        by_descriptor = {channel.fetcher.fileno(): channel for channel in asked}
        poller = poll()
        try:
            for descriptor in (self.waker.fileno(), *by_descriptor):
                poller.register(descriptor, READ | ERR)
            events = poller.poll(timeout_s) or ()
        finally:
            poller.close()
        self.waker.drain()
        return [by_descriptor[descriptor] for descriptor, _ in events if descriptor in by_descriptor]

    # With the event loop of kombu.

    def register_with_event_loop(self, connection: Transport, loop: Any) -> None:  # noqa: ARG002 - theirs
        """Have the event loop watch the sockets of the fetches."""
        self._loop = loop
        self.waker.expect()
        loop.add_reader(self.waker.fileno(), self._woken)
        loop.on_tick.add(self._tick)

    def unregister_from_event_loop(self, connection: Transport, loop: Any) -> None:  # noqa: ARG002 - theirs
        """Have it watch them no more."""
        self._unwatch_all()

    def _woken(self) -> None:
        self.waker.drain()

    def _tick(self) -> None:
        """Deliver what was fetched, and have fetches pending where there is room, before the event loop waits."""
        if self._loop is None:
            return
        self.waker.expect()
        for channel in list(self.channels):
            self._deliver_fetched(channel)
            if channel.ask(ahead=True):
                self._watch(channel)

    def _deliver_fetched(self, channel: DisqueChannel) -> None:
        for _ in range(MOST_AT_ONCE):
            if not channel.deliver_one():
                return
        self._loop.call_soon(self._tick)

    def _watch(self, channel: DisqueChannel) -> None:
        """Watch the socket of a fetch while it is pending."""
        descriptor = channel.fetcher.fileno()
        if descriptor not in self._watched:
            self._watched[descriptor] = channel
            channel.fetcher.watch_with(self._unwatch)
            self._loop.add_reader(descriptor, self._on_readable, descriptor)

    def _unwatch(self, descriptor: int) -> None:
        if self._watched.pop(descriptor, None) is not None:
            self._loop.remove(descriptor)

    def _unwatch_all(self) -> None:
        loop = self._loop
        if loop is None:
            return
        for descriptor in list(self._watched):
            self._unwatch(descriptor)
        loop.remove(self.waker.fileno())
        loop.on_tick.discard(self._tick)
        self._loop = None

    def _on_readable(self, descriptor: int) -> None:
        channel = self._watched.get(descriptor)
        if channel is None:
            return
        channel.fetcher.receive()
        if not channel.fetcher.is_pending:
            self._unwatch(descriptor)
        self._deliver_fetched(channel)

    # Child processes.

    def forget(self) -> None:
        """Begin without the jobs and sockets of the parent, in a child process."""
        self._loop = None  # the child may have one of its own
        self._watched.clear()
        self.waker.close()
        self.leases.forget()
        self.bindings = Bindings(self.leases.client, self.leases.nodes)
        for channel in list(self.channels):
            channel.forget()


_living: WeakSet[Transport] = WeakSet()


def _forget_in_child() -> None:
    for transport in list(_living):
        transport.forget()


os.register_at_fork(after_in_child=_forget_in_child)
