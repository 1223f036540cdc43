"""The hard state of a replica: what must be synced before a message that relies on it leaves.

The commit index is not part of it: a replica that restarts learns it again from the leader.
"""

from __future__ import annotations

from mypy_extensions import i64


class HardState:
    """The term of a replica and the candidate that it voted for in that term; `b""` if it has not voted."""

    def __init__(self, term: i64, vote: bytes) -> None:
        self.term: i64 = term
        self.vote: bytes = vote

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HardState) and self.term == other.term and self.vote == other.vote

    def __repr__(self) -> str:
        return f"HardState({self.term}, {self.vote!r})"
