"""Changing the replicas of a group, one step at a time, until it has those that the catalog names.

The leader of the group compares its members with the catalog and takes the next step: it adds a missing replica as a
learner, makes a learner a voter when it has caught up, and then removes a replica that must go; if that is its own, it
first transfers the leadership. Nothing has to be remembered: a new leader compares again. When the members are those of
the catalog, the leader says so there (SETTLED), and nodes whose replicas were removed delete them.

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


def next_step(raft: Group, wanted: tuple[bytes, ...], now_ms: i64) -> str:
    """Take the next step of a confirmed leader. Returns DONE, UNDER_WAY, or why the step cannot be taken now."""
    members = raft.members
    for replica in wanted:
        if not members.has(replica):
            return _try(raft, members.with_learner(replica), now_ms)
    for learner in members.learners:
        if learner not in wanted:
            return _try(raft, members.without(learner), now_ms)
        if has_caught_up(raft, learner):
            return _try(raft, members.with_voter(learner), now_ms)
    if members.learners:
        return "a learner has not caught up"
    surplus = [voter for voter in members.voters if voter not in wanted]
    if not surplus:
        return DONE
    others = [voter for voter in surplus if voter != raft.replica]
    if others:
        return _try(raft, members.without(others[0]), now_ms)
    for voter in wanted:
        if has_caught_up(raft, voter) and not raft.transfer(voter, now_ms):
            return UNDER_WAY
    return "no other replica can lead"


def _try(raft: Group, members: Members, now_ms: i64) -> str:
    return raft.change_members(members, now_ms) or UNDER_WAY


def has_caught_up(raft: Group, replica: bytes) -> bool:
    """Whether a replica lacks only a few of the newest entries."""
    progress = raft.progress_of(replica)
    return progress is not None and progress.match > 0 and progress.match + CAUGHT_UP_ENTRIES >= raft.last


def lead_back(exchange: Exchange, raft: Group, lead: bytes, now_ms: i64) -> None:
    """Transfer the leadership to the node that should have it, if it follows."""
    if lead == exchange.node_id or exchange.is_silent(lead):
        return
    for voter in raft.members.voters:
        if node_of(voter) == lead and has_caught_up(raft, voter):
            raft.transfer(voter, now_ms)


def lags(raft: Group) -> dict[bytes, int]:
    """How many entries the replicas of other nodes have not confirmed, by node; empty if this node does not lead."""
    found: dict[bytes, int] = {}
    if raft.is_leader:
        for other in raft.members.all:
            progress = raft.progress_of(other)
            if progress is not None:
                found[node_of(other)] = int(max(raft.last - progress.match, 0))
    return found
