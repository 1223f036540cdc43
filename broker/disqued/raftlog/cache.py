"""Recent entries in memory, bounded by bytes.

Entries are in four generations. When the youngest has a quarter of the bytes, the oldest is dropped as a whole: no list
of what was used when, and no pause for a large cache. An entry whose index has another entry now stays until then: a
reader compares terms.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.raft.entry import Entry

_GENERATIONS: Final = 4
_ENTRY_BYTES: Final = 240
"""The memory of an entry besides its data: two objects, a key and a place in a table."""
_SLOT_BITS: Final = 22
MOST_SLOTS: Final = 1 << _SLOT_BITS


def key_of(slot: i64, index: i64) -> i64:
    """The key of an entry: the slot of its group, and its index (below 2^41)."""
    return index << _SLOT_BITS | slot


class EntryCache:
    """The entries by key."""

    def __init__(self, limit_bytes: i64) -> None:
        self._limit_bytes: i64 = limit_bytes // _GENERATIONS
        self._generations: list[dict[int, Entry]] = [{} for _ in range(_GENERATIONS)]
        """The youngest first."""
        self._bytes: i64 = 0
        """The size of the youngest."""
        self._older: list[i64] = []
        """The sizes of the others, the youngest of them first."""

    @property
    def size_bytes(self) -> i64:
        """About how much memory the entries use."""
        size = self._bytes
        for older in self._older:
            size += older
        return size

    def put(self, key: i64, entry: Entry) -> None:
        """Keep an entry for a while."""
        if self._bytes >= self._limit_bytes:
            if self._limit_bytes <= 0:
                return
            self._generations.pop()
            self._generations.insert(0, {})
            self._older.insert(0, self._bytes)
            del self._older[_GENERATIONS - 1 :]
            self._bytes = 0
        self._generations[0][key] = entry
        self._bytes += len(entry.data) + _ENTRY_BYTES

    def get(self, key: i64) -> Entry | None:
        """An entry, if it is still here."""
        for generation in self._generations:
            entry = generation.get(key)
            if entry is not None:
                return entry
        return None

    def clear(self) -> None:
        """Forget all entries."""
        self._generations = [{} for _ in range(_GENERATIONS)]
        self._older = []
        self._bytes = 0
