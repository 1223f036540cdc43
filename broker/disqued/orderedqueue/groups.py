"""Group keys: jobs with the same key are worked on one at a time, in order; jobs with different keys in parallel.

Each key has the indexes of its waiting jobs in order. A key is *free* if no consumer has a job of it and no returned
job of it that waits for a delay is before the first waiting one. Free keys are sorted by their first job, so the next
job of all keys is found without a search.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from typing import Final

from mypy_extensions import i64
from sortedcontainers import SortedDict

from disqued.orderedqueue.packed import pack_words, unpack_indexes

_LEAST_GAP: Final = 32
"""Taken indexes at the front of an array before they are removed."""


class Group:
    """One group key that some job in the queue has."""

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.profiles: i64 = 0
        """How many profiles have this key."""
        self._waiting = array("q")
        self._start: i64 = 0
        """How many indexes at the front were taken."""
        self.busy: i64 = 0
        """The index of the job that a consumer has; 0 for none."""
        self.held: list[int] = []
        """Indexes of returned jobs that wait for a delay, sorted: later jobs wait for them."""
        self.listed: i64 = 0
        """The index under which the key is in the list of free keys; 0 if it is not there."""

    @property
    def first(self) -> i64:
        """The index of the first waiting job; 0 if there is none."""
        if self._start == len(self._waiting):
            return 0
        return i64(self._waiting[self._start])

    @property
    def count(self) -> i64:
        """How many jobs of the key wait."""
        return len(self._waiting) - self._start

    def insert(self, index: i64) -> None:
        """Add a waiting job."""
        waiting = self._waiting
        start = self._start
        count: i64 = len(waiting)
        if start == count or i64(waiting[count - 1]) < index:
            waiting.append(index)
        elif start > 0 and i64(waiting[start]) > index:
            self._start = start - 1
            waiting[start - 1] = index
        else:
            insort(waiting, index, int(start))

    def remove(self, index: i64) -> None:
        """Take out a waiting job."""
        waiting = self._waiting
        start = self._start
        if i64(waiting[start]) != index:
            del waiting[bisect_left(waiting, index, int(start))]
            return
        start += 1
        if start == len(waiting):
            del waiting[:]
            start = 0
        elif start >= _LEAST_GAP and start * 2 > len(waiting):
            del waiting[: int(start)]
            start = 0
        self._start = start

    def hold(self, index: i64) -> None:
        """Have later jobs wait for this one, which is delayed."""
        insort(self.held, int(index))

    def unhold(self, index: i64) -> None:
        """Later jobs need not wait for this one any more."""
        self.held.remove(int(index))

    def pack(self) -> bytes:
        """The waiting jobs, for a snapshot."""
        return pack_words(self._waiting[int(self._start) :])

    def unpack(self, data: bytes) -> None:
        """Restore the waiting jobs. Raises Malformed."""
        self._waiting = unpack_indexes(data)
        self._start = 0


class Groups:
    """The group keys of a queue."""

    def __init__(self) -> None:
        self.by_key: dict[bytes, Group] = {}
        self._free = SortedDict()
        """`Group` by the index of its first waiting job."""
        self.first: i64 = 0
        """The index of the first job of all free keys; 0 for none."""

    def join(self, key: bytes) -> Group:
        """The group with this key, for one more profile."""
        group = self.by_key.get(key)
        if group is None:
            group = Group(key)
            self.by_key[key] = group
        group.profiles += 1
        return group

    def leave(self, group: Group) -> None:
        """A profile with this key is gone; without any, no job has the key."""
        group.profiles -= 1
        if group.profiles == 0:
            del self.by_key[group.key]

    def refresh(self, group: Group) -> None:
        """List the group as free, or not, after a change."""
        first = group.first
        if group.busy != 0 or (first > 0 and group.held and i64(group.held[0]) < first):
            first = 0
        listed = group.listed
        if first == listed:
            return
        free = self._free
        if listed > 0:
            del free[listed]
        if first > 0:
            free[first] = group
        group.listed = first
        self.first = free.peekitem(0)[0] if free else 0

    def first_group(self) -> Group:
        """The free group that has the first job."""
        found: Group = self._free.peekitem(0)[1]
        return found
