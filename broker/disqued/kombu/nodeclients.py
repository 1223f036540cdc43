"""A client for each node of the cluster, for what must be done at a certain node or at all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from disqued.client import Client

GONE_PRIORITY: Final = 100
"""The priority in HELLO of a node that failed or leaves."""


class NodeClients:
    """Clients that stay with one node each. Threads can share them."""

    def __init__(self, client: Client, client_of: Callable[[str], Client], *, discover: bool) -> None:
        """`client_of` makes a client of the node at an address; without `discover` only the node in use is known."""
        self._client = client
        self._client_of = client_of
        self._discover = discover
        self._lock = threading.Lock()
        self._clients: dict[str, Client] = {}

    def live(self) -> dict[str, Client]:
        """Return the clients of the nodes that are not known to be gone, by node ID, the one in use first.

        Raises:
            ConnectionFailed: no node can be reached.
        """
        hello = self._client.hello()
        addresses = {hello.node_id: str(self._client.node)}
        if self._discover:
            for node in hello.nodes:
                if node.id != hello.node_id and node.host and node.port and node.priority < GONE_PRIORITY:
                    host = f"[{node.host}]" if ":" in node.host else node.host
                    addresses[node.id] = f"{host}:{node.port}"
        with self._lock:
            for node_id in [known for known in self._clients if known not in addresses]:
                self._clients.pop(node_id).close()
            for node_id, address in addresses.items():
                if node_id not in self._clients:
                    self._clients[node_id] = self._client_of(address)
            return {node_id: self._clients[node_id] for node_id in addresses}

    def close(self) -> None:
        """Close all clients."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()

    def forget(self) -> None:
        """Close the sockets of the parent, in a child process, in which another thread may have had the lock."""
        for client in list(self._clients.values()):
            client.close()
