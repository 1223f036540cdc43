"""What recovery found on disk for one replica: the state from which a `Group` starts.

Entries may be many, so recovery may pass only the newest ones, and for the others the terms and the changes of
members.

- A new group starts with `SnapshotMeta(0, 0, 0, members)` with the same members at each of its first replicas.
- A replica that is added to a group starts with no members. It receives them with the log.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.raft.entry import MEMBERS, Entry
from disqued.raft.hardstate import HardState
from disqued.raft.members import Members
from disqued.raft.snapshotmeta import SnapshotMeta


class Stored:
    """The synced state of a replica.

    Attributes:
        hard: Term and vote.
        snapshot: The snapshot; its index is 0 if there is none.
        terms: The first index and the term of each run of entries of one term after the snapshot, in order.
        last: The index of the last entry, or of the snapshot if there are no entries after it.
        last_time_ms: The time of that entry.
        changes: The index and the members of each MEMBERS entry after the snapshot, in order.
        tail: The newest entries, up to the last one; maybe none.
    """

    def __init__(
        self,
        hard: HardState,
        snapshot: SnapshotMeta,
        terms: list[tuple[i64, i64]],
        last: i64,
        last_time_ms: i64,
        changes: list[tuple[i64, Members]],
        tail: list[Entry],
    ) -> None:
        self.hard: HardState = hard
        self.snapshot: SnapshotMeta = snapshot
        self.terms: list[tuple[i64, i64]] = terms
        self.last: i64 = last
        self.last_time_ms: i64 = last_time_ms
        self.changes: list[tuple[i64, Members]] = changes
        self.tail: list[Entry] = tail


def stored_entries(hard: HardState, snapshot: SnapshotMeta, entries: list[Entry]) -> Stored:
    """Return the state of a replica of which all entries after the snapshot are given."""
    terms: list[tuple[i64, i64]] = []
    changes: list[tuple[i64, Members]] = []
    last: i64 = snapshot.index
    last_time_ms: i64 = snapshot.time_ms
    last_term: i64 = -1
    for entry in entries:
        if entry.term != last_term:
            terms.append((entry.index, entry.term))
            last_term = entry.term
        if entry.kind == MEMBERS:
            changes.append((entry.index, Members.decode(entry.data)))
        last = entry.index
        last_time_ms = entry.time_ms
    return Stored(hard, snapshot, terms, last, last_time_ms, changes, list(entries))
