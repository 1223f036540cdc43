"""The progress log of a job: what its workers wrote, by claim and sequence number.

The first content of a number stays. Readers see, for each claim, only the entries from 0 on without a gap, claims in
their order: the last visible one is where the next worker continues.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from mypy_extensions import i64

LogLine: TypeAlias = tuple[int, int, int, bytes]
"""Claim, sequence number, unix milliseconds, entry."""

ADDED: Final = 0
SAME: Final = 1
"""The entry was there."""
OTHER: Final = 2
"""Another entry has the number."""
FULL: Final = 3

LINE_BYTES: Final = 200
"""The memory of an entry besides its bytes: measured, with the numbers and the place in its dict."""
LOG_BYTES: Final = 700
"""The memory of a log without entries, with the holders that it was sent to."""


class JobLog:
    """The log of one job."""

    def __init__(self) -> None:
        self._entries: dict[int, dict[int, tuple[int, bytes]]] = {}
        self.count: i64 = 0
        self.bytes: i64 = 0
        """The bytes of all entries."""
        self.asked_ms: i64 = 0
        """When another holder was asked for what is missing here."""
        self.spread_ms: i64 = 0
        """When it was last sent to holders that do not have it."""
        self.told: set[bytes] = set()
        """The holders that have got the log, by ID and incarnation: one that lost its memory is told again."""

    @property
    def used_bytes(self) -> i64:
        """The memory that it takes."""
        return LOG_BYTES + self.count * LINE_BYTES + self.bytes

    def add(self, line: LogLine, most_entries: i64, most_bytes: i64) -> int:
        """Add an entry; returns ADDED, SAME, OTHER or FULL."""
        claim, seq, at_ms, entry = line
        of_claim = self._entries.get(claim)
        if of_claim is not None and seq in of_claim:
            return SAME if of_claim[seq][1] == entry else OTHER
        if self.count >= most_entries or self.bytes + len(entry) > most_bytes:
            return FULL
        if of_claim is None:
            of_claim = {}
            self._entries[claim] = of_claim
        of_claim[seq] = (at_ms, entry)
        self.count += 1
        self.bytes += len(entry)
        return ADDED

    def length(self, claim: int) -> int:
        """How many entries of a claim are here from 0 on without a gap."""
        of_claim = self._entries.get(claim)
        if of_claim is None:
            return 0
        seq = 0
        while seq in of_claim:
            seq += 1
        return seq

    def next_seq(self, claim: int) -> int:
        """The number behind all that this node knows for a claim."""
        of_claim = self._entries.get(claim)
        return max(of_claim) + 1 if of_claim else 0

    def has_gap(self, claim: int) -> bool:
        """Whether an entry of a claim is missing here."""
        return self.length(claim) < len(self._entries.get(claim, {}))

    def visible(self) -> list[LogLine]:
        """What readers see, in the order of claims and numbers."""
        found: list[LogLine] = []
        for claim in sorted(self._entries):
            of_claim = self._entries[claim]
            for seq in range(self.length(claim)):
                at_ms, entry = of_claim[seq]
                found.append((claim, seq, at_ms, entry))
        return found

    def lines(self) -> list[LogLine]:
        """All entries."""
        return [
            (claim, seq, at_ms, entry)
            for claim, of_claim in self._entries.items()
            for seq, (at_ms, entry) in of_claim.items()
        ]
