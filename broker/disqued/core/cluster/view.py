"""The cluster as this node sees it: its own identity, the other nodes, and which of them are reachable.

The membership room keeps it up to date. All rooms read it where a decision depends on the cluster.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.cluster.peer import Peer
from disqued.core.jobs.claims import default_number

JUST_GONE_TIMEOUTS: Final = 3
"""A member that does not answer is expected back for this many node timeouts. It is suspected after the first one, and
the majority decides whether it has failed before the last one ends."""


class ClusterView:
    """The cluster as one node sees it."""

    def __init__(self, node_id: bytes, port: i64) -> None:
        self.node_id = node_id
        """40 hex digits."""
        self.port: i64 = port
        """The announced port for clients; `tls_port` without a port without TLS."""
        self.tls_port: i64 = 0
        """The announced port for clients with TLS; 0 for none."""
        self.bus_port: i64 = 0
        """The announced port for other nodes."""
        self.ip = b""
        """The address of this node: as announced, otherwise empty until another node contacts it."""
        self.host = b""
        """The host name that this node announces; empty if none."""
        self.zone = b""
        """The zone that this node announces; empty if unknown."""
        self.zoned: bool = False
        """Whether the zones of the reachable nodes, or theirs and that of this node, differ; an unknown one counts."""
        self.external = b""
        """The address that this node announces for clients outside; empty if none."""
        self.data = b""
        """The data ID and the free memory that this node announces (DATAID); empty until they are known."""
        self.claim_number: i64 = default_number(node_id)
        """The number of this node in its claims; no other member has it (`membership.tokenbits`)."""
        self.claim_refusal = ""
        """The error reply to claims until that number is saved; empty otherwise."""
        self.leaving: bool = False
        """Whether this node moves its jobs to the others."""
        self.leaves_to_end: bool = False
        """Whether it does so only because its process ends: if it starts again, it stays."""
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
        self.zoned = len({peer.zone for peer in self.reachable} | ({self.zone} - {b""})) > 1
        self.generation += 1
        self.size = 1 + len([peer for peer in self.peers.values() if not peer.in_handshake])

    def count_reachable(self, features: i64) -> i64:
        """The number of reachable nodes with these features; 0 for none in particular."""
        if features == 0:
            return len(self.reachable)
        count: i64 = 0
        for peer in self.reachable:
            if peer.features & features == features:
                count += 1
        return count

    def count_expected(self, now_ms: i64, node_timeout_ms: i64, features: i64 = 0) -> i64:
        """The number of nodes with these features that are reachable, or that have just gone and may be back soon."""
        count: i64 = 0
        for peer in self.peers.values():
            if peer.features & features != features:
                continue
            if peer.reachable or (
                peer.only_suspected and now_ms - peer.ping_sent_ms <= node_timeout_ms * JUST_GONE_TIMEOUTS
            ):
                count += 1
        return count

    def claim_number_of(self, peer: Peer) -> i64:
        """The number of another node in its claims."""
        return peer.claim_number if peer.claim_number >= 0 else default_number(peer.id)

    def knows(self, node_id: bytes) -> bool:
        """Whether the node is this node or another known node."""
        return node_id == self.node_id or node_id in self.peers
