"""Job IDs: their format, the meaning of their last digits, and that they do not repeat."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.core.jobs.jobid import JobIds, is_job_id, require_job_ids, stamp_for, stamp_of, stamped, ttl_minutes
from disqued.errors import BadJobId

NODE_ID = b"0123456789abcdef0123456789abcdef01234567"
FORM = re.compile(rb"D-01234567-[A-Za-z0-9+/]{24}-[0-9a-f]{4}")


def ids(seed: int = 0) -> JobIds:
    return JobIds(NODE_ID, random.Random(seed).randbytes)


@given(st.integers(1, (1 << 32) - 1), st.booleans())
def test_an_id_has_its_format_and_tells_the_kind_of_job(ttl_s: int, at_least_once: bool) -> None:
    job_id = ids().make(ttl_s, at_least_once)
    assert FORM.fullmatch(job_id)
    assert is_job_id(job_id)
    assert ttl_minutes(job_id) % 2 == at_least_once
    assert ttl_minutes(job_id) | 1 == min(ttl_s // 60, 65535) | 1


@pytest.mark.parametrize(
    ("ttl_s", "odd", "even"),
    [
        (1, b"0001", b"0000"),
        (59, b"0001", b"0000"),
        (86400, b"05a1", b"05a0"),
        (65535 * 60, b"ffff", b"fffe"),
        (1 << 32, b"ffff", b"fffe"),
    ],
)
def test_the_last_four_digits_are_the_ttl_in_minutes(ttl_s: int, odd: bytes, even: bytes) -> None:
    maker = ids()
    assert maker.make(ttl_s, at_least_once=True).endswith(b"-" + odd)
    assert maker.make(ttl_s, at_least_once=False).endswith(b"-" + even)
    assert maker.make(ttl_s, at_least_once=True).endswith(b"-" + odd)


def test_ids_do_not_repeat() -> None:
    maker = ids()
    assert len({maker.make(600, at_least_once=True) for _ in range(5000)}) == 5000


def test_ids_depend_only_on_the_random_bytes() -> None:
    one, same, other = ids(7), ids(7), ids(8)
    assert [one.make(60, True) for _ in range(2000)] == [same.make(60, True) for _ in range(2000)]
    assert ids(7).make(60, True) != other.make(60, True)


@given(st.binary(), st.binary(min_size=1))
def test_an_id_with_a_stamp_has_its_format_and_a_random_part(queue: bytes, key: bytes) -> None:
    maker = ids()
    one, other = (stamped(maker.make(600, at_least_once=True), stamp_for(queue, key)) for _ in range(2))
    assert FORM.fullmatch(one)
    assert stamp_of(one) == stamp_of(other) == stamp_for(queue, key)
    assert one != other


@given(st.tuples(st.binary(), st.binary(min_size=1)), st.tuples(st.binary(), st.binary(min_size=1)))
def test_stamps_are_equal_only_for_the_same_queue_and_key(one: tuple[bytes, bytes], other: tuple[bytes, bytes]) -> None:
    assert (stamp_for(*one) == stamp_for(*other)) == (one == other)


WELL_FORMED = ids().make(600, at_least_once=True)


@pytest.mark.parametrize(
    "word",
    [b"", WELL_FORMED[:-1], WELL_FORMED + b"0", b"d" + WELL_FORMED[1:], WELL_FORMED.replace(b"-", b"_"), b"D-" * 20],
)
def test_words_of_another_format_are_no_ids(word: bytes) -> None:
    assert not is_job_id(word)
    with pytest.raises(BadJobId, match="BADID Invalid Job ID format"):
        require_job_ids([b"ACKJOB", WELL_FORMED, word], 1)


def test_only_the_format_of_an_id_is_verified() -> None:
    strange = b"D-\xff\xff\xff\xff\xff\xff\xff\xff-" + b" " * 24 + b"-\0\0\0\0"
    assert is_job_id(strange)
    require_job_ids([b"not an ID", WELL_FORMED, strange], 1)


@pytest.mark.parametrize(
    ("digits", "minutes"), [(b"05a1", 0x5A1), (b"05A1", 0x5A1), (b"ffff", 65535), (b"0x1g", 16), (b"    ", 0)]
)
def test_the_ttl_is_read_in_upper_and_lower_case_and_invalid_digits_count_as_zero(digits: bytes, minutes: int) -> None:
    assert ttl_minutes(WELL_FORMED[:36] + digits) == minutes
