"""Changing the replicas of a group, one step at a time, until it has those that the catalog names.

The leader of the group compares its members with the catalog and takes the next step: it adds a missing replica as a
learner, makes a learner a voter when it has caught up, and then removes a replica that must go; if that is its own, it
first transfers the leadership. Nothing has to be remembered: a new leader compares again. When the members are those of
the catalog, the leader says so there (SETTLED), and nodes whose replicas were removed delete them.

A replica that is damaged (`damaged`) is removed before all else. When that is committed, the leader tells its node, and
the replica comes back as a learner.

The node that should lead a group gets the leadership when it follows and nothing else is under way.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.ordered.exchange import Exchange, node_of
from disqued.raft.group import Group
from disqued.raft.members import Members

CAUGHT_UP_ENTRIES: Final = 200
"""A learner becomes a voter when it lacks no more entries than this."""
LEAD_AGAIN_MS: Final = 30_000
"""How long another leader leads before the node that should lead takes over."""
DONE: Final = "done"
UNDER_WAY: Final = "under way"


class Changing:
    """What the leader of a group does about its members and about who leads."""

    def __init__(self, exchange: Exchange, raft: Group) -> None:
        self._exchange = exchange
        self._raft = raft
        self._damaged: set[bytes] = set()
        """The replicas that must leave the group before they begin again, as far as told in `_term`."""
        self._term: i64 = 0

    def _damaged_now(self) -> set[bytes]:
        """The damaged replicas; those that were told when this node led another term may have returned since."""
        if self._raft.term != self._term:
            self._term = self._raft.term
            self._damaged.clear()
        return self._damaged

    def remove_damaged(self, replica: bytes) -> bool:
        """Have the next step remove a damaged replica. Returns whether it is removed already, and may begin again."""
        raft = self._raft
        if not raft.is_confirmed:
            return False
        damaged = self._damaged_now()
        if raft.members.has(replica) or raft.changes_members:
            damaged.add(replica)
            return False
        damaged.discard(replica)
        return True

    def next_step(self, wanted: tuple[bytes, ...]) -> str:
        """Take the next step of a confirmed leader. Returns DONE, UNDER_WAY, or why none can be taken now."""
        raft = self._raft
        members = raft.members
        damaged = self._damaged_now()
        for replica in members.all:
            if replica in damaged:
                return self._try(members.without(replica))
        for replica in wanted:
            if not members.has(replica) and replica not in damaged:
                return self._try(members.with_learner(replica))
        for learner in members.learners:
            if learner not in wanted:
                return self._try(members.without(learner))
            if has_caught_up(raft, learner):
                return self._try(members.with_voter(learner))
        if members.learners:
            return "a learner has not caught up"
        surplus = [voter for voter in members.voters if voter not in wanted]
        others = [voter for voter in surplus if voter != raft.replica]
        if others:
            return self._try(members.without(others[0]))
        if surplus:
            return UNDER_WAY if self.hand_over(wanted) else "no other replica can lead"
        if raft.changes_members:  # removed replicas are deleted when this is done
            return UNDER_WAY
        return "a replica is damaged" if any(replica in damaged for replica in wanted) else DONE

    def _try(self, members: Members) -> str:
        return self._raft.change_members(members, self._exchange.state.now_ms) or UNDER_WAY

    def hand_over(self, voters: tuple[bytes, ...]) -> bool:
        """Transfer the leadership to one of these voters. Returns whether there is one that can lead."""
        raft = self._raft
        now_ms = self._exchange.state.now_ms
        for voter in voters:
            if voter != raft.replica and has_caught_up(raft, voter) and not raft.transfer(voter, now_ms):
                return True
        return False

    def lead_back(self, lead: bytes) -> None:
        """Transfer the leadership to the node that should have it, if it follows."""
        if lead != self._exchange.node_id and not self._exchange.is_silent(lead):
            self.hand_over(tuple([voter for voter in self._raft.members.voters if node_of(voter) == lead]))


def has_caught_up(raft: Group, replica: bytes) -> bool:
    """Whether a replica lacks only a few of the newest entries."""
    progress = raft.progress_of(replica)
    return progress is not None and progress.match > 0 and progress.match + CAUGHT_UP_ENTRIES >= raft.last


def lags(raft: Group) -> dict[bytes, int]:
    """How many entries the replicas of other nodes have not confirmed, by node; empty if this node does not lead."""
    found: dict[bytes, int] = {}
    if raft.is_leader:
        for other in raft.members.all:
            progress = raft.progress_of(other)
            if progress is not None:
                found[node_of(other)] = int(max(raft.last - progress.match, 0))
    return found
