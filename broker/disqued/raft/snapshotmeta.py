"""What a snapshot replaces: the position of its last entry, the time of that entry, and the members at it.

The core knows nothing else about snapshots. The driver writes them, keeps their bytes and moves them between nodes.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.raft.members import Members


class SnapshotMeta:
    """The index, the term, the time in milliseconds and the members of a snapshot. Index 0: no snapshot yet."""

    def __init__(self, index: i64, term: i64, time_ms: i64, members: Members) -> None:
        self.index: i64 = index
        self.term: i64 = term
        self.time_ms: i64 = time_ms
        self.members: Members = members

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SnapshotMeta)
            and self.index == other.index
            and self.term == other.term
            and self.time_ms == other.time_ms
            and self.members == other.members
        )

    def __repr__(self) -> str:
        return f"SnapshotMeta({self.index}, {self.term}, {self.time_ms}, {self.members!r})"
