"""What stopping this node means for its groups: which would have no majority, and which it leads."""

from __future__ import annotations

from disqued.ordered.exchange import Exchange
from disqued.ordered.replica import Replica
from disqued.raft.liveness import Liveness


def heard_voters(replica: Replica, liveness: Liveness) -> int:
    """How many voters of a group are there, this node included."""
    raft = replica.raft
    return len([voter for voter in raft.members.voters if voter == raft.replica or liveness.heard(voter)])


def losing(exchange: Exchange, liveness: Liveness) -> list[int]:
    """The groups that would have no majority if this node stopped; those with one replica are not meant."""
    found: list[int] = []
    for group, replica in exchange.replicas.items():
        if not isinstance(replica, Replica):
            continue
        members = replica.raft.members
        is_voter = len(members.voters) > 1 and members.is_voter(replica.raft.replica)
        if is_voter and heard_voters(replica, liveness) <= members.quorum:
            found.append(group)
    return found


def hand_over(exchange: Exchange) -> int:
    """Let other nodes lead the groups that this one leads. Returns how many it still leads that others could."""
    left = 0
    for replica in exchange.replicas.values():
        if isinstance(replica, Replica) and replica.raft.is_leader and len(replica.raft.members.voters) > 1:
            left += 1
            replica.hand_over()
    return left
