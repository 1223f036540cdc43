"""The nodes of a cluster, with one client for each node.

A worker needs a client that stays with one node. Spark's tasks need more: all nodes at once for a snapshot or a drain,
or the same node again for a key, which is known only where it was added. So `Brokers` asks for the members with HELLO
and keeps a client for each that connects to that node only and fails immediately. The caller decides what to try next
and for how long.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from disqued.client import Backoff, Client, ConnectionFailed, DisqueError, Hello
from disqued.client.nodes import LEAVING_PRIORITY, Address
from pyspark_disque.options import Options

CONNECT_S: Final = 5.0
"""A node that does not accept a connection within this time counts as unreachable."""
SUSPECT_PRIORITY: Final = 10
"""From this HELLO priority on, the cluster itself suspects that the node has failed."""


@dataclass(frozen=True, slots=True, order=True)
class Member:
    """A node of the cluster. `priority` is from HELLO (1, 5, 10 or 100); lower is better."""

    id: str
    address: str
    priority: int

    @property
    def is_suspect(self) -> bool:
        """Whether other nodes cannot reach the node, or it is leaving."""
        return self.priority >= SUSPECT_PRIORITY

    @property
    def is_leaving(self) -> bool:
        """Whether the node has failed or is leaving."""
        return self.priority >= LEAVING_PRIORITY


class Brokers:
    """The members of the cluster, and a client for each node. Not thread-safe."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._clients: dict[str, Client] = {}
        self._known: tuple[Member, ...] = ()

    def members(self) -> tuple[Member, ...]:
        """Return the members, ordered by ID.

        They are those that the first node to answer knows; without discovery, the given nodes that answer.

        Raises:
            ConnectionFailed: no node can be reached.
            ResponseError: a node refuses to answer, for example because the password is missing.
        """
        problems: list[str] = []
        found: dict[str, Member] = {}
        for address in self._addresses():
            try:
                hello = self.at(address).hello()
            except ConnectionError as error:
                problems.append(str(error))
                continue
            found.update((member.id, member) for member in self._members_of(hello, address))
            if self._options.discover:
                break
        if not found:
            raise ConnectionFailed(f"cannot reach any node of {', '.join(self._options.nodes)}: {'; '.join(problems)}")
        self._known = tuple(sorted(found.values()))
        return self._known

    def _members_of(self, hello: Hello, via: str) -> Iterable[Member]:
        """Yield the members in a HELLO reply; without discovery, only the node that replied.

        That node gets the address `via` if there is no discovery, or if it does not know its own address yet.
        """
        for node in hello.nodes:
            if self._options.discover and node.host and node.port:
                yield Member(node.id, str(Address(node.host, node.port)), node.priority)
            elif node.id == hello.node_id:
                yield Member(node.id, via, node.priority)

    def _addresses(self) -> Iterable[str]:
        """Return the addresses to ask: the known members first, best priority first, then the given nodes."""
        known = sorted(self._known, key=lambda member: member.priority)
        return dict.fromkeys((*(member.address for member in known), *self._options.nodes))

    def at(self, address: str) -> Client:
        """Return the client of one node. It fails immediately if the node cannot be reached."""
        client = self._clients.get(address)
        if client is None:
            client = Client(
                [address],
                user=self._options.user,
                password=self._options.reveal_password(),
                tls=self._options.tls_settings() or False,
                discover=False,
                connect_timeout_s=CONNECT_S,
                timeout_s=self._options.timeout_s,
                backoff=Backoff(attempts=1),
            )
            self._clients[address] = client
        return client

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


_RETRYABLE: Final = (
    "NOREPL", "NOPARENT", "PAUSED", "MAXLEN", "LEAVING", "CLOCK", "OOM", "LOADING", "MISCONF",
    "NOQUORUM", "ERR max number of clients reached",
)  # fmt: skip
"""Prefixes of temporary errors."""


def is_retryable(error: DisqueError) -> bool:
    """Return whether the same request may succeed later, or at another node: one is unreachable, or has no room now."""
    return isinstance(error, ConnectionError) or str(error).startswith(_RETRYABLE)
