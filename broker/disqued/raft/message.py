"""Messages between the replicas of a group. Each may be lost, delayed, duplicated and reordered.

| kind | sender | fields besides sender, recipient and term |
| --- | --- | --- |
| PREVOTE, VOTE | a replica that may become leader | index, log_term: its last entry; flag: in a transfer |
| PREVOTE_REPLY, VOTE_REPLY | its voters | flag: refused |
| APPEND | the leader | index, log_term: the entry before; entries; commit |
| APPEND_REPLY | a follower | index: stored up to here; commit |
| | | flag: refused, then index: the entry before, hint and log_term: where the logs may be equal |
| SNAPSHOT | the leader, together with the bytes | snapshot; answered by APPEND_REPLY |
| TIMEOUT_NOW | the leader, to its successor | none |
| ROUND, ROUND_REPLY | the leader, a voter | round: the leader still leads if a quorum answers; 0: no round |

The term of a PREVOTE is the one that its sender would campaign in. A PREVOTE_REPLY that grants the vote has that term
too.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.raft.entry import Entry
from disqued.raft.snapshotmeta import SnapshotMeta

PREVOTE: Final = 1
PREVOTE_REPLY: Final = 2
VOTE: Final = 3
VOTE_REPLY: Final = 4
APPEND: Final = 5
APPEND_REPLY: Final = 6
SNAPSHOT: Final = 7
TIMEOUT_NOW: Final = 8
ROUND: Final = 9
ROUND_REPLY: Final = 10

NAMES: Final = (
    "", "PREVOTE", "PREVOTE_REPLY", "VOTE", "VOTE_REPLY", "APPEND", "APPEND_REPLY", "SNAPSHOT", "TIMEOUT_NOW", "ROUND",
    "ROUND_REPLY",
)  # fmt: skip

NO_ENTRIES: Final[list[Entry]] = []
"""Shared by the messages without entries, so nobody changes it."""


class Message:
    """One message. The fields of its kind are set after it is made."""

    def __init__(self, kind: i64, sender: bytes, to: bytes, term: i64) -> None:
        self.kind: i64 = kind
        self.sender: bytes = sender
        self.to: bytes = to
        self.term: i64 = term
        self.index: i64 = 0
        self.log_term: i64 = 0
        self.commit: i64 = 0
        self.hint: i64 = 0
        self.round: i64 = 0
        self.flag: bool = False
        self.entries: list[Entry] = NO_ENTRIES
        self.snapshot: SnapshotMeta | None = None

    def __repr__(self) -> str:
        numbers = (
            ("index", self.index), ("log_term", self.log_term), ("commit", self.commit), ("hint", self.hint),
            ("round", self.round),
        )  # fmt: skip
        fields = [f"{self.sender!r} to {self.to!r}", f"term {self.term}"]
        fields += [f"{name} {value}" for name, value in numbers if value]
        if self.flag:
            fields.append("flag")
        if self.entries:
            fields.append(f"entries {self.entries[0].index}..{self.entries[-1].index}")
        if self.snapshot is not None:
            fields.append(repr(self.snapshot))
        return f"<{NAMES[self.kind]} {', '.join(fields)}>"
