"""When the nodes of the other replicas were last heard, shared by all groups of a node.

Groups send no heartbeats. The driver exchanges one message per pair of nodes and notes here each frame that it
receives, under the identity that the node announces now. So a replica whose disk was lost becomes silent.

The driver ticks (`Group.tick`) the groups that have a replica among their members

- when `hear` returns true: the replica was silent before,
- when `expire` returns the replica: it has become silent,
- and, for one group, when the node reports that it does not lead a group whose leader it is for this node (`deny`).

A replica becomes silent in `expire` and not by itself, so a group never misses the change from one to the other.
"""

from __future__ import annotations

from mypy_extensions import i64


class Liveness:
    """The time of the last frame from the node of each replica that is heard."""

    def __init__(self, silent_ms: i64) -> None:
        self.silent_ms: i64 = silent_ms
        self._heard_ms: dict[bytes, i64] = {}
        self._denied: dict[i64, tuple[bytes, i64]] = {}

    def hear(self, replica: bytes, now_ms: i64) -> bool:
        """Note a frame from the node of a replica. Return whether the replica was silent, or was never heard."""
        new = replica not in self._heard_ms
        self._heard_ms[replica] = now_ms
        return new

    def expire(self, now_ms: i64) -> list[bytes]:
        """Make the replicas silent that were not heard for `silent_ms`, and return them."""
        silent = [replica for replica, heard_ms in self._heard_ms.items() if now_ms - heard_ms >= self.silent_ms]
        for replica in silent:
            del self._heard_ms[replica]
        return silent

    def heard_ms(self, replica: bytes) -> i64:
        """Return when the node of a replica was heard last, or -1 if it is silent."""
        return self._heard_ms.get(replica, -1)

    def heard(self, replica: bytes) -> bool:
        """Whether the node of a replica is heard."""
        return replica in self._heard_ms

    def deny(self, replica: bytes, group: i64, term: i64) -> None:
        """Note that the node of a replica reports that it does not lead a group in a term."""
        self._denied[group] = (replica, term)

    def denies(self, replica: bytes, group: i64, term: i64) -> bool:
        """Whether the node of a replica reported that it does not lead a group in a term."""
        denied = self._denied.get(group)
        return denied is not None and denied[0] == replica and denied[1] == term

    def admit(self, group: i64) -> None:
        """Note that a leader of a group was heard after its node denied it: the denial was older, or is repeated."""
        if self._denied:
            self._denied.pop(group, None)

    def forget_group(self, group: i64) -> None:
        """Forget a group that this node has no replica of."""
        self._denied.pop(group, None)
