"""The cluster as the other rooms see it: who this node is and how many others there are.

Kept by the membership room; read wherever a decision depends on the cluster.
"""

from __future__ import annotations

from mypy_extensions import i64


class ClusterView:
    """This node's place in its cluster."""

    def __init__(self, node_id: bytes, port: i64) -> None:
        self.node_id = node_id
        """40 hex digits."""
        self.port: i64 = port
        self.ip = b""
        """This node's address, empty until another node contacted it."""
        self.leaving: bool = False
        self.size: i64 = 1
        """Nodes known, this one included, those in handshake excluded."""
        self.reachable: i64 = 0
        """Other nodes that can be sent a job."""
