"""Which node may start a run, as far as this node is concerned: a run is granted to one node only.

A node starts the run of a schedule with STRICT when the majority of the members has granted it the run. Two majorities
have a member in common, so no two nodes start the same run, whatever they see of the cluster.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

KEPT_MS: Final = 900_000
"""How long a grant is remembered, longer than the IDs of finished jobs: a node that is behind starts nothing twice."""


class Grant:
    """The last run of a schedule that was granted."""

    def __init__(self, due_ms: i64, node_id: bytes, incarnation: bytes, now_ms: i64) -> None:
        self.due_ms: i64 = due_ms
        self.node_id = node_id
        self.incarnation = incarnation
        """Which run of that node: after a restart it does not know whether it started the run."""
        self.granted_ms: i64 = now_ms


class Grants:
    """What one node granted."""

    def __init__(self) -> None:
        self._grants: dict[bytes, Grant] = {}

    def ask(self, name: bytes, due_ms: i64, node_id: bytes, incarnation: bytes, now_ms: i64) -> bytes:
        """The node to which a run is granted, the asking one if it can be.

        Empty if a later run was granted, or this one to the same node before it restarted.
        """
        known = self._grants.get(name)
        if known is None or known.due_ms < due_ms:
            self._grants[name] = Grant(due_ms, node_id, incarnation, now_ms)
            return node_id
        if known.due_ms > due_ms or (known.node_id == node_id and known.incarnation != incarnation):
            return b""
        return known.node_id

    def withdraw(self, name: bytes, due_ms: i64, node_id: bytes) -> None:
        """The node did not start the run and will not: another node may."""
        known = self._grants.get(name)
        if known is not None and known.due_ms == due_ms and known.node_id == node_id:
            del self._grants[name]

    def forget_old(self, now_ms: i64) -> None:
        """Forget grants that are no longer needed."""
        for name, grant in list(self._grants.items()):
            if now_ms - max(grant.granted_ms, grant.due_ms) > KEPT_MS:
                del self._grants[name]

    def clear(self) -> None:
        """Forget all."""
        self._grants.clear()
