"""Replicas of this node that are out of service because their records on the disk are damaged.

The node itself is still heard, so the others would follow such a replica further if it led its group, and would leave
it to the replica to hand jobs to the consumers here. Therefore the node says with each beat that the replica is out of
service: by a request for pre-votes with an empty log, which no replica in service makes. A replica that gets it lets
its core know, if the sender was its leader (`Election`), and the leader sends jobs to this node from then on.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.ordered.catalog import CATALOG_GROUP, Catalog
from disqued.ordered.exchange import Exchange
from disqued.ordered.replica import Replica
from disqued.raft.message import PREVOTE, Message
from disqued.raftlog.log import RaftLog


class DamagedReplicas:
    """Groups of which this node may not have a replica under its identity."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._terms: dict[int, i64] = {}
        """By group, the last term in which the replica may have led; 0 if it has not been in service."""

    def has(self, group: int) -> bool:
        """Whether the replica of a group is damaged."""
        return group in self._terms

    def add(self, group: int, why: str) -> None:
        """Stop the replica of a group."""
        exchange = self._exchange
        replica = exchange.drop(group)
        self._terms[group] = 0
        if isinstance(replica, Replica):
            self._terms[group] = replica.raft.term
            replica.stop()
        exchange.state.host.log(
            "warning",
            "Replica of an ordered queue is damaged and out of service until it is moved to another node "
            f"(CLUSTER ORDERED MOVE): group={group} error={why}",
        )

    def follow(self, catalog: Catalog, identity: bytes, log: RaftLog) -> None:
        """Remove the replicas that this node, with this identity, must have no more. It may get new ones then."""
        for group in [group for group in self._terms if group != CATALOG_GROUP]:
            queue = catalog.by_group.get(group)
            dropped = queue is None and group <= catalog.last_group
            moved = queue is not None and queue.settled and identity not in queue.replicas
            if dropped or moved:
                del self._terms[group]
                log.remove_group(group)

    def tell(self, identity: bytes) -> None:
        """Tell the other replicas which ones of this node, which has this identity, are out of service."""
        for group, term in self._terms.items():
            members = self._exchange.members.get(group, ())
            if identity in members:
                told = [Message(PREVOTE, identity, other, term + 1) for other in members if other != identity]
                self._exchange.add_messages(group, told)


def is_out_of_service(message: Message) -> bool:
    """Whether a message says that the replica that sends it is out of service."""
    return message.kind == PREVOTE and message.index == 0
