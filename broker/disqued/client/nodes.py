"""The choice of node: known addresses, their priorities from HELLO, and the order in which to try them.

The first choice is random, which distributes clients over the nodes. The client then stays with its node until the node
fails or leaves, because that node knows the jobs that the client fetched. If its address leads to several nodes, the
client connects to the node's own address instead. The next node is the one with the best priority in HELLO (1 normal, 5
no link, 10 suspected, 100 failed or leaving), a random one among equals; nodes that just failed come last. The
configured addresses are always kept: the addresses that nodes announce to each other may be unreachable from here.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from disqued.client.values import Hello

DEFAULT_PORT = 7711
NORMAL_PRIORITY = 1
LEAVING_PRIORITY = 100


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a node: host and port, or the path of a unix socket with port 0."""

    host: str
    port: int

    @property
    def is_unix(self) -> bool:
        """True for a unix socket."""
        return self.port == 0

    def __str__(self) -> str:
        if self.is_unix:
            return self.host
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Parse `host`, `host:port`, `[ipv6]:port` or `/path/of/a/socket`.

    Raises:
        ValueError: the text has none of these forms.
    """
    if text.startswith("/"):
        return Address(text, 0)
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        port = rest.removeprefix(":") if bracket else "?"
    else:
        host, _, port = text.partition(":")
    port = port or str(DEFAULT_PORT)
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"invalid node address {text!r}; use host:port, [ipv6]:port or /path/of/a/socket")
    return Address(host, int(port))


def own_addresses(node_id: str, via: Address, hello: Hello) -> list[Address]:
    """Return where a node may be reached that a HELLO from the shared address `via` lists; the best guess is first."""
    known = [node for node in hello.nodes if node.id == node_id and node.port]
    hosts = [host for node in known for host in (node.host, via.host) if host and not via.is_unix]
    return list(dict.fromkeys(Address(host, node.port) for node in known for host in hosts))


def recommended(hello: Hello, creator: str) -> Address | None:
    """Return the address of the node whose ID begins with `creator`, if another node sees no problem with it."""
    for node in hello.nodes:
        if node.id.startswith(creator) and node.priority == NORMAL_PRIORITY and node.host and node.port:
            return Address(node.host, node.port)
    return None


class Nodes:
    """The known addresses of a cluster, and the order in which to try them. Threads can share it."""

    def __init__(self, seeds: Sequence[Address], rng: random.Random) -> None:
        if not seeds:
            raise ValueError("no addresses given; a client needs at least one")
        self._lock = threading.RLock()  # a signal handler may use the client, also while its thread has the lock
        self._seeds = tuple(seeds)
        self._rng = rng
        self._priority = dict.fromkeys(self._seeds, NORMAL_PRIORITY)
        self._failures = dict.fromkeys(self._seeds, 0)
        self._current: Address | None = None
        self._node_id: str | None = None

    @property
    def current(self) -> Address | None:
        """The node in use."""
        return self._current

    @property
    def node_id(self) -> str | None:
        """The ID of the node in use; None if it is not known."""
        return self._node_id

    def order(self) -> list[Address]:
        """Return all known addresses, the one to try first at the front."""
        with self._lock:
            addresses = list(self._priority)
            self._rng.shuffle(addresses)
            return sorted(addresses, key=self._rank)

    def _rank(self, address: Address) -> tuple[bool, int, int]:
        return address != self._current, self._failures[address], self._priority[address]

    def connected(self, address: Address, node_id: str | None = None) -> None:
        """Make this the node in use."""
        with self._lock:
            self._current = address
            self._node_id = node_id
            self._failures[address] = 0

    def failed(self, address: Address) -> None:
        """Record that the node could not be reached, or that its connection broke."""
        with self._lock:
            self._failures[address] = self._failures.get(address, 0) + 1
            self._clear_current(address)

    def leaving(self, address: Address) -> None:
        """Record that the node is about to leave its cluster."""
        with self._lock:
            self._priority[address] = LEAVING_PRIORITY
            self._clear_current(address)

    def _clear_current(self, address: Address) -> None:
        if self._current == address:
            self._current = None
            self._node_id = None

    def learn(self, via: Address, hello: Hello) -> None:
        """Replace the known nodes with those in the HELLO of the node at `via`."""
        known = dict.fromkeys((*self._seeds, via), NORMAL_PRIORITY)
        for node in hello.nodes:
            if node.id == hello.node_id:
                known[via] = node.priority
            elif node.host and node.port:
                known[Address(node.host, node.port)] = node.priority
        with self._lock:
            self._priority = known
            self._failures = {address: self._failures.get(address, 0) for address in known}

    def should_avoid(self, address: Address) -> bool:
        """Return whether the node is leaving while another one is not."""
        with self._lock:
            others = [priority for other, priority in self._priority.items() if other != address]
            own = self._priority.get(address, NORMAL_PRIORITY)
        return own >= LEAVING_PRIORITY > min(others, default=LEAVING_PRIORITY)
