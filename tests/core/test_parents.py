"""The attribute AFTER: which parents a job has, which of them are met, and what two nodes know together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.bus.kinds import FEATURE_AFTER
from disqued.core.jobs.attributes import AFTER, HEAD_BYTES, merged
from disqued.core.jobs.attributes import of as attributes_of
from disqued.core.jobs.parents import (
    ELSE_DROP,
    MAX_PARENTS,
    action_of,
    is_held,
    pack_parents,
    parents_fault,
    parents_of,
    united_parents,
    unmet_of,
    with_all_met,
    with_met,
)

IDS = [b"D-00000000-%024d-05a1" % number for number in range(MAX_PARENTS)]


@given(st.integers(1, MAX_PARENTS), st.sets(st.integers(0, MAX_PARENTS - 1)), st.sets(st.integers(0, MAX_PARENTS - 1)))
def test_a_job_is_held_until_all_parents_are_met_wherever_that_was_heard(
    count: int, here: set[int], there: set[int]
) -> None:
    value = pack_parents(IDS[:count], ELSE_DROP)
    one = other = value
    for number in here:
        one = with_met(one, IDS[number])
    for number in there:
        other = with_met(other, IDS[number])
    known, received = attributes_of({AFTER: one}), attributes_of({AFTER: other})
    together = merged(known, received)
    assert together is not None
    left = [IDS[number] for number in range(count) if number not in here | there]
    after = together.get(AFTER)
    assert after is not None
    assert (parents_of(after), unmet_of(after), action_of(after)) == (IDS[:count], left, ELSE_DROP)
    assert together.held == bool(left)
    assert together.is_child
    assert together.needs & FEATURE_AFTER
    assert merged(together, known) is together
    assert parents_fault(after) == ""
    assert not is_held(b"xx" + with_all_met(after), 2)


def test_the_parents_of_a_job_never_change() -> None:
    value = pack_parents(IDS[:2], ELSE_DROP)
    assert united_parents(value, with_all_met(pack_parents(IDS[1:3], ELSE_DROP))) == value


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\0\1" + bytes(8),
        pack_parents([], 0),
        pack_parents(IDS[:1], 3),
        pack_parents(IDS[:2], 0)[:-1],
        b"\0\2" + bytes(8) + IDS[0],
        b"\0\1\2" + bytes(7) + IDS[0],
        bytes((0, 65)) + bytes(8) + b"".join(IDS) + IDS[0],
    ],
)
def test_wrong_values_are_refused(value: bytes) -> None:
    assert parents_fault(value)


def test_the_memory_of_the_attribute_counts() -> None:
    extra = attributes_of({AFTER: pack_parents(IDS, 0)})
    assert extra is not None
    assert extra.size_bytes > HEAD_BYTES + 64 * 40
