"""The network between nodes in virtual time: connections that deliver bytes in order, a little later."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from disqued.core.link import Carrier, Link

if TYPE_CHECKING:
    from disqued.testing.local import LocalNode

LATENCY_MS = 1


class End(Carrier):
    """One end of a connection."""

    def __init__(self, network: Network, local: LocalNode, link: Link) -> None:
        self.network = network
        self.local = local
        self.link = link
        self.other: End | None = None
        self.open = True

    def write(self, data: bytes) -> None:
        """Deliver to the other end after the latency."""
        self.network.later(LATENCY_MS, lambda: self._arrive(data))

    def _arrive(self, data: bytes) -> None:
        other = self.other
        if self.open and other is not None and other.open:
            other.local.node.link_bytes(other.link, data, other.local.now_ms)
            other.local.flush()

    def unsent_bytes(self) -> int:
        """The network takes everything."""
        return 0

    def close(self) -> None:
        """Close both ends; the other node hears of it after the latency."""
        self.open = False
        other = self.other
        if other is not None and other.open:
            other.open = False
            self.network.later(LATENCY_MS, other.closed)

    def closed(self) -> None:
        """The connection is gone: tell the node."""
        self.local.node.link_closed(self.link, self.local.now_ms)
        self.local.flush()


class Network:
    """Connects nodes; `now_ms` is the virtual time of the network itself."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.names: dict[bytes, list[bytes]] = {}
        """What names resolve to."""
        self._listening: dict[tuple[bytes, int], LocalNode] = {}
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Do something after a while."""
        heappush(self._events, (self.now_ms + delay_ms, next(self._order), action))

    def next_ms(self) -> int | None:
        """When something happens next."""
        return self._events[0][0] if self._events else None

    def deliver(self) -> None:
        """Let happen what is due."""
        while self._events and self._events[0][0] <= self.now_ms:
            heappop(self._events)[2]()

    def listen(self, local: LocalNode, bus_port: int) -> None:
        """Have a node reached at its address."""
        self._listening[local.ip, bus_port] = local

    def unlisten(self, local: LocalNode, bus_port: int) -> None:
        """Have nobody reached there."""
        self._listening.pop((local.ip, bus_port), None)

    def carry(self, local: LocalNode) -> None:
        """Take the output of a node."""
        ready = local.node.ready
        while ready.links or ready.dials or ready.link_hangups or ready.lookups:
            dials, ready.dials = ready.dials, []
            for link in dials:
                self._dial(local, link)
            links, ready.links = ready.links, []
            for link in links:
                link.flush()
            hangups, ready.link_hangups = ready.link_hangups, []
            for link in hangups:
                if link.carrier is not None:
                    link.carrier.close()
            lookups, ready.lookups = ready.lookups, []
            for name in lookups:
                self._look_up(local, name)

    def _dial(self, local: LocalNode, link: Link) -> None:
        """Open a connection to the peer of a link; what is written before it is made arrives after it."""
        peer = link.peer
        assert peer is not None
        end = End(self, local, link)
        link.carrier = end
        ips = self.names.get(peer.host) if peer.host else None
        target = self._listening.get(((ips or [peer.ip])[0], int(peer.bus_port)))
        if target is None:
            end.open = False
            self.later(LATENCY_MS, end.closed)
            return
        accepted = Link(None, target.now_ms, remote_ip=local.ip, local_ip=target.ip)
        link.local_ip = local.ip
        link.remote_ip = target.ip
        far = End(self, target, accepted)
        accepted.carrier = far
        end.other = far
        far.other = end

    def _look_up(self, local: LocalNode, name: bytes) -> None:
        addresses = self.names.get(name, [])
        self.later(LATENCY_MS, lambda: self._found(local, name, addresses))

    def _found(self, local: LocalNode, name: bytes, addresses: list[bytes]) -> None:
        local.node.found(name, addresses, local.now_ms)
        local.flush()
