"""The cluster as this node sees it: its own identity, the other nodes, and which of them are reachable.

The membership room keeps it up to date. All rooms read it where a decision depends on the cluster.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.cluster.peer import Peer


class ClusterView:
    """The cluster as one node sees it."""

    def __init__(self, node_id: bytes, port: i64) -> None:
        self.node_id = node_id
        """40 hex digits."""
        self.port: i64 = port
        """The announced port for clients."""
        self.bus_port: i64 = 0
        """The announced port for other nodes."""
        self.ip = b""
        """The address of this node: as announced, otherwise empty until another node contacts it."""
        self.host = b""
        """The host name that this node announces; empty if none."""
        self.leaving: bool = False
        self.peers: dict[bytes, Peer] = {}
        """The other nodes by ID, including nodes in handshake."""
        self.reachable: list[Peer] = []
        """The other nodes to which jobs can be sent."""
        self.size: i64 = 1
        """The number of members, this node included."""
        self.generation: i64 = 0
        """Increases whenever the members may have changed: cached results about lists of nodes are out of date."""

    def refresh(self) -> None:
        """Recompute the members and the reachable nodes, after peers were added, removed or changed their flags."""
        self.reachable = [peer for peer in self.peers.values() if peer.reachable]
        self.generation += 1
        self.size = 1 + len([peer for peer in self.peers.values() if not peer.in_handshake])

    def knows(self, node_id: bytes) -> bool:
        """Whether the node is this node or another known node."""
        return node_id == self.node_id or node_id in self.peers
