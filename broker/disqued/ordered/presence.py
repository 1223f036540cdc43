"""Which replicas of other nodes are there. The groups of this node are told when one of them comes, goes or restarts.

A node is heard by each of its messages (BEAT, at least). It says which log it has, so its replicas are known by their
identity, and which version of the catalog it knows.
"""

from __future__ import annotations

from disqued.ordered.exchange import SILENT_MS, Exchange, node_of
from disqued.ordered.payload import NO_LOG
from disqued.ordered.replica import Replica
from disqued.raft.liveness import Liveness


class Presence:
    """What the other nodes said last, and when."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self.liveness = Liveness(SILENT_MS)
        self._identities: dict[bytes, bytes] = {}
        """The replicas that other nodes have, as they said last."""
        self._versions: dict[bytes, int] = {}
        """The version of the catalog that each node told last."""

    def heard(self, node_id: bytes, log: bytes) -> None:
        """A node is there, with this log."""
        now_ms = self._exchange.state.now_ms
        self._exchange.heard_ms[node_id] = int(now_ms)
        if log == NO_LOG:
            return
        identity = node_id + log
        former = self._identities.get(node_id)
        if former is not None and former != identity:
            self.restarted(node_id)
        self._identities[node_id] = identity
        if self.liveness.hear(identity, now_ms):
            self._changed([identity], returned=True)

    def note_version(self, node_id: bytes, version: int) -> None:
        """A node told which version of this catalog it knows; -1 if it knows another one, or none."""
        self._versions[node_id] = version

    def is_from_before(self, replica: Replica, node_id: bytes) -> bool:
        """Whether a message comes from a node that may not know that the queue of a replica here was recovered."""
        return replica.epoch > 0 and self._versions.get(node_id, -1) < replica.epoch

    def restarted(self, node_id: bytes) -> None:
        """A node started again: whatever it led, it leads no more."""
        self._versions.pop(node_id, None)
        identity = self._identities.pop(node_id, None)
        if identity is None:
            return
        for replica in self._exchange.replicas.values():
            if isinstance(replica, Replica) and replica.raft.leader == identity:
                self.liveness.deny(identity, replica.group, replica.raft.term)
                replica.look()
        self._changed([identity], returned=True)

    def look_around(self) -> None:
        """Find the nodes that have fallen silent."""
        silent = self.liveness.expire(self._exchange.state.now_ms)
        if silent:
            self._changed(silent, returned=False)

    def forget_versions(self) -> None:
        """The catalog was recovered: what nodes said of the one before does not count."""
        self._versions.clear()

    def forget(self) -> None:
        """This node leaves the cluster."""
        self._identities.clear()
        self._versions.clear()

    def _changed(self, identities: list[bytes], *, returned: bool) -> None:
        """Have the groups with these replicas, and those with consumers on their nodes, look at who is there."""
        now_ms = self._exchange.state.now_ms
        for replica in self._exchange.replicas.values():
            if not isinstance(replica, Replica):
                continue
            members = replica.raft.members
            found = [identity for identity in identities if members.has(identity)]
            for identity in found:
                if returned:
                    replica.raft.node_returned(identity, now_ms)
                    replica.applier.found_replica(identity)
                elif not self._exchange.is_silent(node_of(identity)):  # its log has failed
                    replica.applier.lost_replica(identity)
                replica.look()
            if not found:
                replica.watch_nodes()
