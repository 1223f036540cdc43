"""The log in memory, compared with a plain list, and what late reports of the disk confirm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.raft.entry import MEMBERS, NORMAL, Entry
from disqued.raft.hardstate import HardState
from disqued.raft.log import Log
from disqued.raft.members import Members
from disqued.raft.snapshotmeta import SnapshotMeta
from disqued.raft.stored import stored_entries

FIRST = Members((b"a",))
MANY = 1 << 30


def log_of(*terms: int, bound: int = MANY, snapshot: int = 0, snapshot_term: int = 0) -> Log:
    entries = [entry(term, snapshot + 1 + at) for at, term in enumerate(terms)]
    meta = SnapshotMeta(snapshot, snapshot_term, 0, FIRST)
    return Log(stored_entries(HardState(0, b""), meta, entries), bound)


def entry(term: int, index: int, data: bytes = b"", kind: int = NORMAL) -> Entry:
    return Entry(term, index, 1000 + index, kind, data)


def append(log: Log, *terms: int) -> None:
    for term in terms:
        log.append(entry(term, int(log.last) + 1))


def test_terms_are_known_from_the_snapshot_to_the_end() -> None:
    log = log_of(2, 2, 3, 5, snapshot=10, snapshot_term=1)
    assert [log.term_at(index) for index in range(9, 16)] == [-1, 1, 2, 2, 3, 5, -1]


@pytest.mark.parametrize(
    ("index", "term", "equal"),
    [(4, 1, 2), (4, 3, 3), (4, 4, 4), (9, 9, 5), (2, 9, 2), (5, 0, 0), (5, 2, 2)],
)
def test_place_where_logs_may_be_equal_skips_whole_terms(index: int, term: int, equal: int) -> None:
    assert log_of(1, 1, 3, 4, 4).equal_up_to(index, term) == equal


def test_place_before_the_snapshot_needs_a_snapshot() -> None:
    log = log_of(5, 5, snapshot=10, snapshot_term=4)
    assert log.equal_up_to(12, 4) == 10
    assert log.equal_up_to(12, 3) == 9
    assert log.equal_up_to(7, 9) == 7


@given(st.data())
def test_log_is_like_a_plain_list_of_terms(data: st.DataObject) -> None:
    log = log_of()
    plain: list[int] = []
    base = 0
    for _ in range(data.draw(st.integers(1, 25))):
        action = data.draw(st.sampled_from(["append", "append", "append", "cut", "compact", "replace", "sync"]))
        term = plain[-1] if plain else int(log.snapshot.term)
        if action == "append":
            new = term + data.draw(st.integers(0, 2))
            append(log, new)
            plain.append(new)
        elif action == "cut" and plain:
            index = data.draw(st.integers(base + 1, base + len(plain)))
            log.cut(index)
            del plain[index - base - 1 :]
        elif action == "compact" and plain:
            index = data.draw(st.integers(base + 1, base + len(plain)))
            log.compact(SnapshotMeta(index, plain[index - base - 1], 0, FIRST))
            del plain[: index - base]
            base = index
        elif action == "replace":
            base += len(plain) + data.draw(st.integers(1, 3))
            plain = []
            log.replace(SnapshotMeta(base, term + 1, 0, FIRST))
        elif action == "sync":
            log.take(1)
            log.persisted(1)
        assert log.last == base + len(plain)
        assert [log.term_at(index) for index in range(base + 1, log.last + 1)] == plain
        assert log.last_term == (plain[-1] if plain else log.snapshot.term)
        place, below = data.draw(st.integers(base, base + 30)), data.draw(st.integers(0, 20))
        fitting = [base + 1 + at for at, one in enumerate(plain) if one <= below and base + 1 + at <= place]
        equal = log.equal_up_to(place, below)
        if fitting or log.snapshot.term <= below:
            assert equal == max([base, *fitting])
        else:
            assert equal < base


def test_members_are_those_of_the_newest_entry_and_are_reverted_with_it() -> None:
    log = log_of(1, 1)
    second, third = Members((b"a", b"b")), Members((b"a", b"b", b"c"))
    log.append(entry(1, 3, second.encode(), MEMBERS))
    append(log, 1)
    log.append(entry(1, 5, third.encode(), MEMBERS))
    assert (log.members, log.members_index) == (third, 5)
    assert [log.members_at(index) for index in range(2, 6)] == [FIRST, second, second, third]
    log.cut(4)
    assert (log.members, log.members_index) == (second, 3)
    log.cut(3)
    assert (log.members, log.members_index) == (FIRST, 0)


def test_old_entries_leave_memory_above_the_bound_but_not_before_they_are_synced_and_committed() -> None:
    log = log_of(bound=2000)
    for _ in range(40):
        log.append(entry(1, int(log.last) + 1, b"x" * 80))
    log.take(1)
    log.trim(40)
    assert log.first == 1, "nothing is synced"
    log.persisted(1)
    log.trim(5)
    assert log.first == 6, "later ones are not committed"
    log.trim(40)
    assert log.last - log.first + 1 <= 10
    assert log.term_at(1) == 1
    assert log.entry(1) is None
    kept = log.entry(40)
    assert kept is not None
    assert kept.index == 40


def test_entries_are_stable_when_their_batch_is_synced() -> None:
    log = log_of(1, 1)
    assert (log.stable, log.has_writes) == (2, False)
    append(log, 1, 1)
    assert [one.index for one in log.take(1)] == [3, 4]
    append(log, 1)
    assert [one.index for one in log.take(2)] == [5]
    assert [log.ticket_of(index, 3) for index in (2, 3, 4, 5, 6)] == [0, 1, 1, 2, 3]
    log.persisted(1)
    assert log.stable == 4
    log.persisted(2)
    assert log.stable == 5


def test_replaced_entries_are_not_stable_when_the_old_batch_is_synced() -> None:
    log = log_of(1)
    append(log, 1, 1, 1)
    log.take(1)
    log.cut(3)
    append(log, 2)
    assert [one.index for one in log.take(2)] == [3]
    log.persisted(1)
    assert log.stable == 2
    log.persisted(2)
    assert log.stable == 3


def test_replaced_entries_that_come_back_wait_for_their_own_batch() -> None:
    """A, then B, then A again at the same index: each has its own ticket."""
    log = log_of(1)
    append(log, 1)
    log.take(1)
    for ticket, term in ((2, 2), (3, 1)):
        log.cut(2)
        append(log, term)
        log.take(ticket)
    log.persisted(1)
    assert log.stable == 1
    log.persisted(2)
    assert log.stable == 1
    log.persisted(3)
    assert log.stable == 2


def test_snapshot_that_replaces_the_log_is_stable_when_its_batch_is_synced() -> None:
    log = log_of(1, 1)
    append(log, 1)
    log.take(1)
    log.replace(SnapshotMeta(9, 2, 77, FIRST))
    assert log.has_writes
    append(log, 2)
    assert [one.index for one in log.take(2)] == [10]
    log.persisted(1)
    assert log.stable == 0
    log.persisted(2)
    assert (log.stable, log.last_time_ms) == (10, 1010)


def test_unsynced_entries_stay_in_memory_when_a_snapshot_covers_them() -> None:
    log = log_of(1, 1)
    append(log, 1, 1)
    log.take(1)
    log.compact(SnapshotMeta(4, 1, 0, FIRST))
    assert log.entry(3) is not None
    log.persisted(1)
    log.compact(SnapshotMeta(4, 1, 0, FIRST))
    assert log.entry(3) is None
