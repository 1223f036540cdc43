"""The log of a replica in memory: the newest entries, and of the older ones only the terms and the members.

What the log must answer about every index after the snapshot is its term, for the comparison of logs. Entries of one
term follow each other, so a list of runs is enough: one per term with entries. The entries themselves are kept up to a
bound in bytes. Older ones, which a slow follower needs, are read from the store.

The log also knows what is synced. Writes are asynchronous: `take` hands entries to the driver in a batch, and
`persisted` reports later that this batch is synced. Meanwhile a new leader may have replaced the entries of that batch
with others of the same indexes. So replacing entries lowers what each batch under way can confirm (`_highs`).
Otherwise a late report would confirm entries that were never synced (the ABA problem of asynchronous writes).
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from mypy_extensions import i64

from disqued.raft.entry import MEMBERS, Entry
from disqued.raft.members import Members
from disqued.raft.snapshotmeta import SnapshotMeta
from disqued.raft.stored import Stored

_ENTRY_BYTES: Final = 120
"""The memory of an entry besides its data."""


class Log:
    """The entries after a snapshot. `last` is the last index, `stable` the last one that is synced."""

    def __init__(self, stored: Stored, bound: i64) -> None:
        self._bound: i64 = bound
        self.snapshot: SnapshotMeta = stored.snapshot
        self.restore: SnapshotMeta | None = None
        """A received snapshot that no batch has taken yet."""
        self._entries: list[Entry] = list(stored.tail)
        self.first: i64 = stored.last + 1 - len(stored.tail)
        """The index of the first entry in memory; last + 1 if there is none."""
        self.last: i64 = stored.last
        self.last_time_ms: i64 = stored.last_time_ms
        self._run_firsts: list[i64] = [run[0] for run in stored.terms]
        self._run_terms: list[i64] = [run[1] for run in stored.terms]
        self.last_term: i64 = self._run_terms[-1] if self._run_terms else stored.snapshot.term
        self._changes: list[tuple[i64, Members]] = list(stored.changes)
        self.members: Members = stored.snapshot.members
        """The newest in the log, committed or not."""
        self.members_index: i64 = 0
        """The index of the entry that they come from."""
        self._bytes: i64 = 0
        for entry in stored.tail:
            self._bytes += len(entry.data) + _ENTRY_BYTES
        self.stable: i64 = stored.last
        self.taken: i64 = stored.last
        """The last index that is synced or in a batch under way."""
        self._tickets: list[i64] = []
        self._highs: list[i64] = []
        """For each batch under way, in order: its ticket, and the last index that is synced with it."""
        self._find_members()

    # --- questions ----------------------------------------------------------------------------------------------------

    def term_at(self, index: i64) -> i64:
        """Return the term of the entry at an index, or -1 if the log does not have it or the snapshot covers it."""
        if index > self.last or index < self.snapshot.index:
            return -1
        if index == self.snapshot.index:
            return self.snapshot.term
        run: i64 = len(self._run_firsts) - 1
        if index < self._run_firsts[run]:
            run = bisect_right(self._run_firsts, index) - 1
        return self._run_terms[run]

    def equal_up_to(self, index: i64, term: i64) -> i64:
        """Return the last index, not above the given one, whose term is not above the given one.

        If the other log has an entry of this term at this index, no later entries of the logs can be equal. The result
        is below the index of the snapshot if that snapshot is too new.
        """
        if index > self.last:
            index = self.last
        run: i64 = bisect_right(self._run_firsts, index) - 1
        while run >= 0:
            if self._run_terms[run] <= term:
                return index
            index = self._run_firsts[run] - 1
            run -= 1
        if self.snapshot.term <= term or index < self.snapshot.index:
            return index
        return self.snapshot.index - 1

    def entry(self, index: i64) -> Entry | None:
        """Return the entry at an index, if it is in memory."""
        if index < self.first or index > self.last:
            return None
        return self._entries[index - self.first]

    def entries(self, low: i64, high: i64) -> list[Entry]:
        """Return the entries from one index to another, which are in memory."""
        return self._entries[low - self.first : high + 1 - self.first]

    def is_newer(self, index: i64, term: i64) -> bool:
        """Whether a log with this last entry has everything that may be committed in this one."""
        return term > self.last_term or (term == self.last_term and index >= self.last)

    def members_at(self, index: i64) -> Members:
        """Return the members as of an entry, which is not before the snapshot."""
        members = self.snapshot.members
        for change in self._changes:
            if change[0] > index:
                break
            members = change[1]
        return members

    # --- changes ------------------------------------------------------------------------------------------------------

    def append(self, entry: Entry) -> None:
        """Append the next entry."""
        assert entry.index == self.last + 1
        if entry.term != self.last_term or not self._run_firsts:
            self._run_firsts.append(entry.index)
            self._run_terms.append(entry.term)
            self.last_term = entry.term
        self._entries.append(entry)
        self._bytes += len(entry.data) + _ENTRY_BYTES
        self.last = entry.index
        self.last_time_ms = entry.time_ms
        if entry.kind == MEMBERS:
            self._changes.append((entry.index, Members.decode(entry.data)))
            self._find_members()

    def cut(self, index: i64) -> None:
        """Remove the entry at an index and all after it. The caller appends the entries that replace them."""
        assert self.snapshot.index < index <= self.last
        if index < self.first:
            self._entries = []
            self.first = index
        else:
            del self._entries[index - self.first :]
        self._bytes = 0
        for entry in self._entries:
            self._bytes += len(entry.data) + _ENTRY_BYTES
        while self._run_firsts and self._run_firsts[-1] >= index:
            self._run_firsts.pop()
            self._run_terms.pop()
        self.last = index - 1
        self.last_term = self._run_terms[-1] if self._run_terms else self.snapshot.term
        while self._changes and self._changes[-1][0] >= index:
            self._changes.pop()
        self._find_members()
        self.taken = min(self.taken, index - 1)
        self.stable = min(self.stable, index - 1)
        self._lower(index - 1)

    def _lower(self, index: i64) -> None:
        """Let the batches under way confirm no entry after an index: these entries have been replaced."""
        for at in range(len(self._highs)):
            if self._highs[at] > index:
                self._highs[at] = index

    def replace(self, meta: SnapshotMeta) -> None:
        """Replace everything by a received snapshot."""
        self.restore = meta
        self.snapshot = meta
        self._entries = []
        self._bytes = 0
        self.first = meta.index + 1
        self.last = meta.index
        self.last_term = meta.term
        self.last_time_ms = meta.time_ms
        self._run_firsts = []
        self._run_terms = []
        self._changes = []
        self._find_members()
        self.taken = meta.index
        self.stable = 0
        self._tickets = []
        self._highs = []

    def compact(self, meta: SnapshotMeta) -> None:
        """Forget the entries up to a synced snapshot; in memory, those that are not synced stay."""
        self.snapshot = meta
        run: i64 = bisect_right(self._run_firsts, meta.index) - 1
        if run > 0:
            del self._run_firsts[:run]
            del self._run_terms[:run]
        keep: i64 = 0
        while keep < len(self._changes) and self._changes[keep][0] <= meta.index:
            keep += 1
        del self._changes[:keep]
        drop: i64 = min(meta.index, self.stable) + 1 - self.first
        if drop > 0:
            self._drop(min(drop, len(self._entries)))

    def trim(self, committed: i64) -> None:
        """Drop the oldest entries from memory if there are too many bytes; never those not synced or not committed."""
        if self._bytes <= self._bound:
            return
        bytes_left: i64 = self._bytes
        drop: i64 = 0
        most: i64 = min(committed, self.stable) + 1 - self.first
        # A quarter more than necessary, so that moving the rest of the list is rare.
        while drop < most and bytes_left > self._bound // 4 * 3:
            bytes_left -= len(self._entries[drop].data) + _ENTRY_BYTES
            drop += 1
        self._drop(drop)

    def _drop(self, count: i64) -> None:
        for at in range(count):
            self._bytes -= len(self._entries[at].data) + _ENTRY_BYTES
        del self._entries[:count]
        self.first += count

    def _find_members(self) -> None:
        if self._changes:
            self.members_index, self.members = self._changes[-1]
        else:
            self.members_index, self.members = self.snapshot.index, self.snapshot.members

    # --- writes -------------------------------------------------------------------------------------------------------

    @property
    def has_writes(self) -> bool:
        """Whether a batch would take something."""
        return self.taken < self.last or self.restore is not None

    def take(self, ticket: i64) -> list[Entry]:
        """Return the entries that no batch has taken; they are synced when this ticket is persisted."""
        if not self.has_writes:
            return []
        taken = self.entries(self.taken + 1, self.last)
        self.taken = self.last
        self.restore = None
        self._tickets.append(ticket)
        self._highs.append(self.last)
        return taken

    def persisted(self, ticket: i64) -> None:
        """Note that all batches up to a ticket are synced."""
        done: i64 = 0
        while done < len(self._tickets) and self._tickets[done] <= ticket:
            if self._highs[done] > self.stable:
                self.stable = self._highs[done]
            done += 1
        if done > 0:
            del self._tickets[:done]
            del self._highs[:done]

    def ticket_of(self, index: i64, following: i64) -> i64:
        """Return the ticket whose batch syncs an index, 0 if it is synced; `following` is the ticket of the next."""
        if index <= self.stable:
            return 0
        if index > self.taken or self.restore is not None:
            return following
        for at in range(len(self._highs)):
            if self._highs[at] >= index:
                return self._tickets[at]
        return following
