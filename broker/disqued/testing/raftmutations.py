"""Mutations: the Raft core broken on purpose, to test that its simulator notices.

Most replace a method, which works with the interpreted build only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from disqued.raft.changes import Changes
from disqued.raft.core import Core
from disqued.raft.election import Election
from disqued.raft.following import Following
from disqued.raft.leading import Leading
from disqued.raft.log import Log
from disqued.raft.members import Members
from disqued.raft.message import APPEND_REPLY, VOTE, VOTE_REPLY, Message
from disqued.raft.reads import Reads

_send_synced = Core.send_synced
_append = Following.append
_wait = Core.wait_for_election


def _vote_at_once(self: Core, message: Message, index: int) -> None:
    """Send votes and requests for votes before the vote is synced."""
    if message.kind in {VOTE, VOTE_REPLY} and message.to != self.me:
        self.send(message)
    else:
        _send_synced(self, message, index)


def _confirm_at_once(self: Core, message: Message, index: int) -> None:
    """Confirm entries before they are synced."""
    if message.kind == APPEND_REPLY:
        self.send(message)
    else:
        _send_synced(self, message, index)


def _any_term(self: Leading, index: int) -> bool:
    """Commit entries of earlier terms by counting."""
    return index <= self._core.log.last


def _any_log(self: Election, message: Message) -> bool:
    """Give votes to candidates with any log."""
    del self, message
    return True


def _forget_vote(self: Core) -> None:
    """Forget after a restart who got the vote. Every replica waits for an election when it starts."""
    if self.now_ms and self.ticket == 0 and self.vote:
        self.vote = b""
    _wait(self)


def _apply_all(self: Following, message: Message) -> None:
    """Commit all entries that the leader sends."""
    message.commit = message.index + len(message.entries)
    _append(self, message)


def _all_count(self: Leading) -> tuple[bytes, ...]:
    """Count learners for the commit."""
    members = self._core.log.members
    return tuple(members.all)


def _ready(self: Changes) -> str:
    """Change the members without a committed entry of the term."""
    core = self._core
    return "the last change is not committed" if core.log.members_index > core.committed else ""


def _several(self: Changes) -> str:
    """Begin a change while the last one is not committed."""
    return "" if self._leading.is_confirmed else "no entry of this term is committed"


def _all_voters(self: Changes, members: Members) -> str:
    """Change any number of voters at once."""
    del self, members
    return ""


def _no_lowering(self: Log, index: int) -> None:
    """Let batches under way confirm entries that have been replaced."""
    del self, index


def _no_round(self: Reads) -> None:
    """Confirm reads without asking anybody."""
    self.results += [(token, self._index) for token in self._asked]
    self._asked = []
    self.due_ms = 0


@dataclass(frozen=True)
class RaftMutation:
    """One way to break the core."""

    why: str
    """What goes wrong."""
    patched: tuple[tuple[type, str, Callable[..., Any]], ...] = ()
    """Classes, their methods, and the replacements."""
    mixes: tuple[str, ...] = ()
    """The mixes of faults that reveal it; all if empty."""
    same_identity: bool = False
    """Whether nodes that lose their disk keep their identity."""

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Apply the patches while the context lasts."""
        originals = [(place, name, place.__dict__[name]) for place, name, _ in self.patched]
        for place, name, replacement in self.patched:
            setattr(place, name, replacement)
        try:
            yield
        finally:
            for place, name, original in originals:
                setattr(place, name, original)


MUTATIONS: Final[dict[str, RaftMutation]] = {
    "vote-not-synced": RaftMutation(
        "a replica votes, crashes before the sync, and votes for another candidate in the same term",
        ((Core, "send_synced", _vote_at_once),),
        ("elections", "crashes"),
    ),
    "confirmed-before-sync": RaftMutation(
        "the leader counts entries that a crash of the follower loses",
        ((Core, "send_synced", _confirm_at_once),),
        ("crashes", "disks"),
    ),
    "old-term-committed": RaftMutation(
        "an entry of an earlier term is committed because a quorum has it, and replaced later (figure 8)",
        ((Leading, "may_commit", _any_term),),
        ("overthrow",),
    ),
    "no-log-check": RaftMutation(
        "a candidate without a committed entry becomes leader",
        ((Election, "may_win", _any_log),),
    ),
    "double-vote": RaftMutation(
        "a replica that restarts votes a second time in its term",
        ((Core, "wait_for_election", _forget_vote),),
        ("elections", "crashes"),
    ),
    "applied-before-commit": RaftMutation(
        "a follower applies entries that are replaced later",
        ((Following, "append", _apply_all),),
    ),
    "learner-counts": RaftMutation(
        "the leader commits with learners, which a leader elected by the voters does not have to know",
        ((Leading, "voting", _all_count),),
        ("members", "empty"),
    ),
    "change-without-own-entry": RaftMutation(
        "leaders of two terms change the members in different ways, and their quorums are disjoint",
        ((Changes, "not_ready", _ready),),
        ("members",),
    ),
    "two-changes": RaftMutation(
        "the second change begins before the first one is committed, so quorums may be disjoint",
        ((Changes, "not_ready", _several),),
        ("members",),
    ),
    "several-voters": RaftMutation(
        "one change replaces several voters, so quorums may be disjoint",
        ((Changes, "too_different", _all_voters),),
        ("members",),
    ),
    "aba": RaftMutation(
        "a late report of the disk confirms entries that replaced the ones that were written",
        ((Log, "_lower", _no_lowering),),
        ("late disks",),
    ),
    "emptied-same-identity": RaftMutation(
        "a replica that lost its disk votes under its old identity for a candidate without committed entries",
        mixes=("empty",),
        same_identity=True,
    ),
    "stale-read": RaftMutation(
        "a leader that was deposed without knowing it answers a read",
        ((Reads, "count", _no_round),),
        ("overthrow", "network"),
    ),
}
"""By name."""
