"""Replicas of this node that are out of service because their records on the disk are damaged.

The node itself is still heard, so the others would follow such a replica further if it led its group, and would leave
it to the replica to hand jobs to the consumers here. Therefore the node says with each beat that the replica is out of
service (`damagemessages`). A replica that gets this lets its core know, if the sender was its leader (`Election`). The
leader sends jobs to this node from then on, and removes the replica from the members of the group.

The replica voted and confirmed entries that it does not know any more. So it must not begin from nothing while it is a
member: it would vote twice in a term, or for a leader that lacks what it confirmed. When its removal is committed, no
vote of it can help a replica that does not know of the removal: those are too few even together with it. Then the
leader says so, and this node lets the replica begin again as soon as a leader sends to it, as a learner.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.ordered.catalog import CATALOG_GROUP, Catalog
from disqued.ordered.damagemessages import is_removal, out_of_service
from disqued.ordered.exchange import Exchange
from disqued.ordered.replica import Replica
from disqued.raft.message import Message
from disqued.raftlog.log import RaftLog


class _Damage:
    """The damage of the replica of one group."""

    def __init__(self, number: i64, term: i64) -> None:
        self.number: i64 = number
        """Drawn by chance."""
        self.term: i64 = term
        """The last term in which the replica may have led; 0 if it has not been in service."""
        self.removed = False
        """Whether a leader has said that the replica is no member any more."""


class DamagedReplicas:
    """Groups whose replica under the identity of this node is damaged."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._damages: dict[int, _Damage] = {}

    def has(self, group: int) -> bool:
        """Whether the replica of a group is damaged."""
        return group in self._damages

    def add(self, group: int, why: str) -> None:
        """Stop the replica of a group."""
        exchange = self._exchange
        host = exchange.state.host
        replica = exchange.drop(group)
        damage = _Damage(int.from_bytes(host.random_bytes(6), "big"), 0)
        self._damages[group] = damage
        if isinstance(replica, Replica):
            damage.term = replica.raft.term
            replica.stop()
        host.log(
            "warning",
            "Replica of an ordered queue is damaged and out of service until the other replicas have removed it, then "
            f"it begins from nothing: group={group} error={why}",
        )

    def follow(self, catalog: Catalog, identity: bytes, log: RaftLog) -> None:
        """Remove the replicas that this node, with this identity, must have no more. It may get new ones then."""
        for group in [group for group in self._damages if group != CATALOG_GROUP]:
            queue = catalog.by_group.get(group)
            dropped = queue is None and group <= catalog.last_group
            moved = queue is not None and queue.settled and identity not in queue.replicas
            if dropped or moved:
                self._remove(group, log)

    def _remove(self, group: int, log: RaftLog) -> None:
        del self._damages[group]
        log.remove_group(group)

    def tell(self, identity: bytes) -> None:
        """Tell the other replicas which ones of this node, which has this identity, are out of service."""
        for group, damage in self._damages.items():
            if not damage.removed:
                others = [other for other in self._exchange.members.get(group, ()) if other != identity]
                told = [out_of_service(identity, other, damage.term + 1, damage.number) for other in others]
                self._exchange.add_messages(group, told)

    def take(self, group: int, message: Message) -> None:
        """Note a message for a replica that this node does not have, if it says that the replica was removed."""
        damage = self._damages.get(group)
        if damage is not None and is_removal(message) and message.log_term == damage.number:
            damage.removed = True

    def begins(self, group: int, log: RaftLog) -> bool:
        """Whether the replica of a group may begin, to which a leader sends. If it was damaged, its log is removed."""
        damage = self._damages.get(group)
        if damage is None:
            return True
        if not damage.removed:
            return False
        self._remove(group, log)
        self._exchange.state.host.log(
            "notice", f"Replica of an ordered queue was damaged and begins from nothing: group={group}"
        )
        return True
