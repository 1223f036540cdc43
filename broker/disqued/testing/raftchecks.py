"""What must hold in every run of Raft groups, checked at each event: the invariants of the Raft paper, and reads.

- *Election safety*: at most one leader per term.
- *Log matching*: entries of the same index and term are equal, and so are the terms of the entries before them. By
  induction, logs with a common entry are equal up to it.
- *Leader completeness*: a leader has every entry that was committed in an earlier term.
- *State machine safety*: all replicas apply the same entry at an index, and have the same digest then.
- *Never un-commit*: the commit index of a process does not fall, and no committed entry is replaced in its log.
- *Durability*: when a leader is elected, a quorum has synced its vote or a later term. When a leader commits an entry,
  a quorum has synced it. (Unless a voter has lost its disk.)
- *Reads*: the index of a read contains everything that any replica had committed when the read began.
"""

from __future__ import annotations

import zlib

from disqued.raft.entry import Entry
from disqued.raft.group import Group


class Violation(AssertionError):
    """An invariant does not hold; the text says which and where."""


def digest_after(digest: int, entry: Entry) -> int:
    """Return the digest of the machine after an entry."""
    return zlib.crc32(b"%d %d %d %d " % (digest, entry.index, entry.time_ms, entry.kind) + entry.data)


def leads_in(group: Group, term: int) -> bool:
    """Whether a replica leads in a term."""
    return group.is_leader and int(group.term) == term


class RaftChecks:
    """What all replicas of one group have done so far."""

    def __init__(self) -> None:
        self.leaders: dict[int, bytes] = {}
        self.elections = 0
        self.committed = 0
        """The highest index that a replica has committed."""
        self._entries: dict[tuple[int, int], tuple[int, int, bytes, int]] = {}
        """By index and term: time, kind, data, and the term of the entry before."""
        self._applied: dict[int, tuple[int, int]] = {}
        """By index: the term, and the digest of the machine."""
        self._committed_in: dict[int, int] = {}
        """By term: the highest index that its leader has committed."""
        self._leading: dict[int, Group] = {}
        self._reads: dict[int, int] = {}

    def leads(self, replica: bytes, group: Group) -> bool:
        """Check a replica that leads. Return whether it has just been elected."""
        term = int(group.term)
        first = self.leaders.setdefault(term, replica)
        if first != replica:
            raise Violation(f"election safety: {first!r} and {replica!r} lead in term {term}")
        if self._leading.get(term) is group:
            return False
        self.elections += 1
        self._leading[term] = group
        for earlier, index in self._committed_in.items():
            if earlier < term:
                self._check_complete(group, earlier, index)
        return True

    def _check_complete(self, group: Group, term: int, index: int) -> None:
        applied = self._applied.get(index)
        if applied is not None and group.term_at(index) not in {applied[0], -1}:
            raise Violation(
                f"leader completeness: {group.replica!r} leads in term {group.term} without entry {index} that was "
                f"committed in term {term}"
            )
        if index > group.last:
            raise Violation(
                f"leader completeness: {group.replica!r} leads in term {group.term} with a log up to {group.last}, "
                f"{index} was committed in term {term}"
            )

    def writes(self, replica: bytes, group: Group, entries: list[Entry]) -> None:
        """Check the entries that a replica appends."""
        previous = int(group.term_at(entries[0].index - 1))
        if previous < 0:
            raise Violation(f"{replica!r} appends {entries[0].index} after an entry that it does not know")
        for entry in entries:
            value = (int(entry.time_ms), int(entry.kind), entry.data, previous)
            known = self._entries.setdefault((entry.index, entry.term), value)
            if known != value:
                raise Violation(f"log matching: {replica!r} has {entry!r} after term {previous}, elsewhere {known!r}")
            applied = self._applied.get(entry.index)
            if applied is not None and applied[0] != entry.term and group.committed >= entry.index:
                raise Violation(f"{replica!r} replaces the committed entry {entry.index}")
            previous = entry.term

    def commits(self, group: Group, before: int) -> bool:
        """Check the commit index of a process, which was another one before. Return whether it rose at the leader."""
        committed = int(group.committed)
        if committed < before:
            raise Violation(f"{group.replica!r} lowers its commit index from {before} to {committed}")
        self.committed = max(self.committed, committed)
        term = int(group.term)
        if leads_in(group, term):
            self._committed_in[term] = committed
            for later, leader in self._leading.items():
                if later > term and leads_in(leader, later):
                    self._check_complete(leader, term, committed)
            return committed > before
        return False

    def durable(self, group: Group, synced: list[bool], what: str) -> None:
        """Check that a quorum has synced what the leader relies on; a list with one value for each voter."""
        if sum(synced) < group.members.quorum:
            raise Violation(f"durability: {group.replica!r} relies on {what} that {sum(synced)} replicas have synced")

    def applies(self, replica: bytes, entry: Entry, digest: int) -> None:
        """Check an entry that a replica has applied, with its digest after it."""
        value = (int(entry.term), digest)
        known = self._applied.setdefault(entry.index, value)
        if known != value:
            raise Violation(f"state machine safety: {replica!r} applies {entry!r}, elsewhere it was of term {known[0]}")

    def restores(self, replica: bytes, index: int, digest: int) -> None:
        """Check a snapshot that a replica has received."""
        known = self._applied.get(index)
        if known is not None and known[1] != digest:
            raise Violation(f"state machine safety: {replica!r} restores another state at {index}")

    def reads(self, token: int) -> None:
        """Note that a read begins."""
        self._reads[token] = self.committed

    def answers(self, token: int, index: int) -> None:
        """Check the index of a read; 0 is a refusal."""
        began = self._reads.pop(token)
        if 0 < index < began:
            raise Violation(f"a read is answered from index {index}, but {began} was committed when it began")
