"""Jobs share equal lists of holders, and forged lists do not fill the memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from disqued.core.cluster.holders import MAX_KEPT, MAX_KEPT_IDS, Holders
from disqued.core.jobs.job import NOBODY

A, B, C = (letter * 40 for letter in (b"a", b"b", b"c"))

node_ids = st.sampled_from([A, B, C, b"d" * 40, b"e" * 40])
lists = st.lists(node_ids, unique=True).map(tuple)


def test_equal_lists_are_one_object() -> None:
    holders = Holders()

    first = holders.plus(holders.plus(NOBODY, A), B)

    assert first == (A, B)
    assert holders.plus((A,), B) is first
    assert holders.keep((A, B)) is first
    assert holders.unpack(A + B) is first
    assert holders.union((A,), (A, B)) is first


def test_adding_a_node_that_is_in_the_list_returns_the_same_list() -> None:
    holders = Holders()
    both = holders.keep((A, B))

    assert holders.plus(both, A) is both
    assert holders.union(both, (B, A)) is both
    assert holders.union(both, both) is both
    assert holders.union(both, NOBODY) is both


@given(lists, lists)
def test_a_union_has_the_nodes_of_both_lists_in_order(left: tuple[bytes, ...], right: tuple[bytes, ...]) -> None:
    assert Holders().union(left, right) == left + tuple(node_id for node_id in right if node_id not in left)


@given(lists)
def test_a_packed_list_is_its_length_and_its_ids(node_ids: tuple[bytes, ...]) -> None:
    holders = Holders()

    packed = holders.pack(node_ids)

    assert packed == len(node_ids).to_bytes(4, "little") + b"".join(node_ids)
    assert holders.pack(tuple(node_ids)) is packed
    assert holders.unpack(packed[4:]) == node_ids


def test_a_duplicate_id_on_the_wire_is_removed() -> None:
    assert Holders().unpack(A + B + A) == (A, B)


def test_hash_of_a_list_does_not_depend_on_its_order_and_is_never_0() -> None:
    holders = Holders()

    assert holders.hash_of((A, B, C)) == holders.hash_of((C, A, B)) == Holders().hash_of((B, C, A))
    assert holders.hash_of((A, B)) not in {0, holders.hash_of((A, C)), holders.hash_of((A, B, C))}
    assert holders.hash_of(()) != 0


def test_forged_lists_do_not_fill_the_memory() -> None:
    holders = Holders()

    for number in range(3 * MAX_KEPT):
        holders.pack(holders.unpack(b"%040d" % number))
        holders.hash_of(holders.unpack(b"%040d" % number))
        assert len(holders._hashes) <= MAX_KEPT
        assert len(holders._kept) <= MAX_KEPT
        assert len(holders._packed) <= MAX_KEPT
        assert len(holders._unpacked) <= MAX_KEPT


def test_long_forged_lists_do_not_fill_the_memory() -> None:
    holders = Holders()
    length = MAX_KEPT_IDS // 8

    for number in range(20):
        holders.pack(holders.unpack(b"".join(b"%040d" % (number * length + index) for index in range(length))))
        assert sum(map(len, holders._kept)) <= MAX_KEPT_IDS + length
        assert sum(map(len, holders._packed)) <= MAX_KEPT_IDS + length
        assert sum(map(len, holders._unpacked)) <= (MAX_KEPT_IDS + length) * 40


def test_a_list_stays_valid_after_it_was_removed_from_the_cache() -> None:
    holders = Holders()
    mine = holders.keep((A, B))
    for number in range(2 * MAX_KEPT):
        holders.keep((b"%040d" % number,))

    assert holders.plus(mine, C) == (A, B, C)
    assert holders.pack(mine)[4:] == A + B
