"""The nodes of a cluster, each with a client of its own: what the connector does, it does at a certain node.

A client that stays with one node is right for a worker. Spark's tasks want more: all nodes at once (a snapshot, a
drain), or the same one again (a key is known where it was added). So the members are asked for with HELLO, and there is
a client for each that speaks to nobody else and fails at once; who calls decides what to try next, and for how long.
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
"""A node that does not take a connection for so long is not reachable now."""
DOUBTED_PRIORITY: Final = 10
"""From this priority in HELLO on, the cluster itself doubts that a node is there."""


@dataclass(frozen=True, slots=True, order=True)
class Member:
    """A node of the cluster. The lower `priority`, the better (Disque command HELLO: 1, 5, 10, 100)."""

    id: str
    address: str
    priority: int

    @property
    def is_doubted(self) -> bool:
        """Whether the others miss the node, or it leaves."""
        return self.priority >= DOUBTED_PRIORITY

    @property
    def is_leaving(self) -> bool:
        """Whether it failed for good or leaves."""
        return self.priority >= LEAVING_PRIORITY


class Brokers:
    """Who is in the cluster, and a client for each node. One thread at a time."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._clients: dict[str, Client] = {}
        self._known: tuple[Member, ...] = ()

    def members(self) -> tuple[Member, ...]:
        """All nodes by ID, as the first one that answers sees them; without discovery, those given that answer.

        Raises:
            ConnectionFailed: none can be reached.
            ResponseError: one refuses to answer, for instance for want of a password.
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
            raise ConnectionFailed(f"no node of {', '.join(self._options.nodes)} can be reached: {'; '.join(problems)}")
        self._known = tuple(sorted(found.values()))
        return self._known

    def _members_of(self, hello: Hello, via: str) -> Iterable[Member]:
        """What a node tells of the members, or without discovery of itself.

        It is where it was asked if it is not to be taken at its word, or does not know its own address yet.
        """
        for node in hello.nodes:
            if self._options.discover and node.host and node.port:
                yield Member(node.id, str(Address(node.host, node.port)), node.priority)
            elif node.id == hello.node_id:
                yield Member(node.id, via, node.priority)

    def _addresses(self) -> Iterable[str]:
        """Where to ask: nodes that are known and not doubted first, then those given."""
        known = sorted(self._known, key=lambda member: member.priority)
        return dict.fromkeys((*(member.address for member in known), *self._options.nodes))

    def at(self, address: str) -> Client:
        """The client of one node. It fails at once when the node can not be reached."""
        client = self._clients.get(address)
        if client is None:
            client = Client(
                [address],
                password=self._options.reveal_password(),
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


_PASSING: Final = (
    "NOREPL", "PAUSED", "MAXLEN", "LEAVING", "OOM", "LOADING", "MISCONF", "ERR max number of clients reached",
)  # fmt: skip
"""The beginnings of refusals that are not for ever."""


def is_passing(error: DisqueError) -> bool:
    """Whether what went wrong may go right a little later: somebody is away, or has no room now."""
    return isinstance(error, ConnectionError) or str(error).startswith(_PASSING)
