"""Attributes of jobs: the block behind a serialised job, what is refused, and what two copies of a job agree on."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.core.jobs import attributes
from disqued.core.jobs.attributes import (
    AFTER,
    ATTRIBUTES,
    DEAD,
    HARD,
    MARK,
    META,
    PRIORITY,
    REASON,
    Attributes,
    changed,
    described,
    i32_value,
    i64_value,
    merged,
)
from disqued.core.jobs.codec import CorruptJob, pack_for_bus, pack_plain, unpack
from persistence.samples import BORN_MS, make_job

NOBODY = bytes(4)
UNKNOWN_SOFT = 77


def of(values: dict[int, bytes]) -> Attributes:
    made = attributes.of(values)
    assert made is not None
    return made


VALUES = st.dictionaries(
    st.sampled_from([kind.tag for kind in ATTRIBUTES if kind.size < 0 and kind.tag != AFTER] + [UNKNOWN_SOFT]),
    st.binary(max_size=90),
).flatmap(
    lambda values: st.integers(attributes.LEAST_PRIORITY, attributes.MOST_PRIORITY).map(
        lambda priority: values | {PRIORITY: i32_value(priority)}
    )
)


@given(VALUES)
def test_a_job_carries_its_attributes_behind_it(values: dict[int, bytes]) -> None:
    job = make_job(random.Random(1))
    job.extra = of(values)
    packed = pack_for_bus(job, BORN_MS, NOBODY)
    assert packed.startswith(pack_plain(job, BORN_MS, NOBODY))
    unpacked = unpack(b"ab" + packed + b"next", 2, 2 + len(packed) + 4)
    assert unpacked.end == 2 + len(packed)
    assert unpacked.job.extra is not None
    assert unpacked.job.extra.values() == values
    assert unpacked.job.extra.priority == int.from_bytes(values[PRIORITY], "little", signed=True)


@given(VALUES, st.data())
def test_a_block_that_is_cut_off_or_changed_is_refused_or_read_whole(
    values: dict[int, bytes], data: st.DataObject
) -> None:
    job = make_job(random.Random(1))
    job.extra = of(values)
    packed = bytearray(pack_for_bus(job, BORN_MS, NOBODY))
    begin = len(pack_plain(job, BORN_MS, NOBODY))
    end = data.draw(st.integers(begin, len(packed)))
    for at in data.draw(st.lists(st.integers(begin, len(packed) - 1), max_size=3)):
        packed[at] = data.draw(st.integers(0, 255))
    try:
        unpacked = unpack(bytes(packed), 0, end)
    except CorruptJob:
        return
    if unpacked.job.extra is not None:
        assert packed[begin:].startswith(unpacked.job.extra.packed)


def block(*entries: tuple[int, bytes]) -> bytes:
    body = b"".join(bytes((tag,)) + len(value).to_bytes(4, "little") + value for tag, value in entries)
    return MARK + len(body).to_bytes(4, "little") + body


@pytest.mark.parametrize(
    ("packed", "why"),
    [
        (MARK + b"\xff\xff\xff\x03", "claim 67108871 bytes, and 8 are left"),
        (MARK + bytes(4), "no attributes"),
        (MARK + b"\x03\0\0\0abc", "is cut off"),
        (MARK + b"\x05\0\0\0\x02\x09\0\0\0", "longer than the attributes"),
        (block((PRIORITY, b"abc")), "priority has 3 bytes instead of 4"),
        (block((REASON, b"b"), (META, b"a")), "is not behind those with smaller numbers"),
        (block((META, b"a"), (META, b"a")), "is not behind those with smaller numbers"),
        (block((HARD | 5, b"something")), "attribute 133 is not known"),
        (b"ATX\xff" + bytes(4), "no attributes"),
    ],
)
def test_a_bad_block_is_refused_with_what_is_wrong(packed: bytes, why: str) -> None:
    data = pack_plain(make_job(random.Random(1)), BORN_MS, NOBODY) + packed
    with pytest.raises(CorruptJob, match=why):
        unpack(data, 0, len(data))


def test_two_copies_agree_and_lose_nothing() -> None:
    known = of({META: b"first", REASON: b"old", UNKNOWN_SOFT: b"kept"})
    received = of({META: b"second", REASON: b"new", PRIORITY: i32_value(7)})
    result = merged(known, received)
    assert result is not None
    assert result.values() == {META: b"first", REASON: b"new", UNKNOWN_SOFT: b"kept", PRIORITY: i32_value(7)}
    assert merged(known, None) is known
    assert merged(None, received) is received


def test_changes_set_replace_and_remove_values() -> None:
    first = changed(None, {REASON: b"no route", DEAD: i64_value(-5)})
    assert first is not None
    assert described(first) == [("reason", b"no route"), ("dead-since", -5)]
    second = changed(first, {REASON: b"full", DEAD: None})
    assert second is not None
    assert second.values() == {REASON: b"full"}
    assert changed(second, {REASON: None}) is None
