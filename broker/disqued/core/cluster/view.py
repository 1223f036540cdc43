"""The cluster as the other rooms see it: who this node is, who the others are, who can be reached.

Kept by the membership room; read wherever a decision depends on the cluster.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.cluster.peer import Peer
from disqued.core.cluster.seedbook import SeedBook


class ClusterView:
    """This node's place in its cluster."""

    def __init__(self, node_id: bytes, port: i64) -> None:
        self.node_id = node_id
        """40 hex digits."""
        self.port: i64 = port
        """For clients, as announced."""
        self.bus_port: i64 = 0
        """For other nodes, as announced."""
        self.ip = b""
        """This node's address: as announced, otherwise empty until another node contacted it."""
        self.ip_is_old: bool = False
        """`ip` was read from a file: since then the node may have moved."""
        self.announced_ip = b""
        """The address that the configuration says, empty for none."""
        self.host = b""
        """The name this node announces, empty for none."""
        self.leaving: bool = False
        self.peers: dict[bytes, Peer] = {}
        """The other nodes by ID, those in handshake included."""
        self.reachable: list[Peer] = []
        """Those that can be sent jobs."""
        self.size: i64 = 1
        """Nodes known, this one included, those in handshake excluded."""
        self.generation: i64 = 0
        """Grows whenever nodes may have come or gone: what was found out about lists of nodes before is out of date."""
        self.forgotten: dict[bytes, int] = {}
        """Until when (unix milliseconds) gossip can not bring back nodes that were forgotten."""
        self.unsaved: bool = False
        """Something changed that the cluster configuration file does not say yet."""
        self.news: bool = False
        """What frames say of this node changed, and the others are to hear of it."""
        self.seeds = SeedBook()
        self.save_failed: bool = False
        """Writing the file failed; it is tried again from this round on:"""
        self.save_round: i64 = 0
        self.refusals_logged: dict[tuple[bytes, str], int] = {}
        """When (unix milliseconds) it was logged that a node is refused, and why."""
        self.rounds: i64 = 0
        """How often the regular duties of the bus were done."""
        self.round_ms: i64 = 0
        """When they were done last."""

    def refresh(self) -> None:
        """Count anew, after peers came, went or changed their flags."""
        self.reachable = [peer for peer in self.peers.values() if peer.reachable]
        self.generation += 1
        self.size = 1 + len([peer for peer in self.peers.values() if not peer.in_handshake])

    def knows(self, node_id: bytes) -> bool:
        """Whether it is this node or one of the others."""
        return node_id == self.node_id or node_id in self.peers
