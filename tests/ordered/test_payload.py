"""The payloads of the messages of ordered queues: what is packed is read again, and junk gives one kind of error."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.ordered.payload import (
    Beat,
    Founding,
    MalformedPayloadError,
    Told,
    pack_answered,
    pack_asked,
    pack_beat,
    pack_catalog,
    pack_founding,
    pack_messages,
    unpack_answered,
    unpack_asked,
    unpack_beat,
    unpack_catalog,
    unpack_founding,
    unpack_messages,
)

READERS: list[Callable[[bytes], object]] = [
    unpack_beat,
    unpack_catalog,
    unpack_messages,
    unpack_asked,
    unpack_answered,
    unpack_founding,
]
U32 = st.integers(0, (1 << 32) - 1)
U64 = st.integers(0, (1 << 64) - 1)
IDENTITY = st.binary(min_size=16, max_size=16)
LOG = st.binary(min_size=8, max_size=8)


@given(st.builds(Beat, LOG, IDENTITY, st.integers(0, (1 << 63) - 1), st.booleans()))
def test_a_beat_is_read_again(beat: Beat) -> None:
    assert unpack_beat(pack_beat(beat)) == beat


@given(st.builds(Told, IDENTITY, st.binary(max_size=300), st.binary(max_size=300)))
def test_a_catalog_is_read_again(told: Told) -> None:
    assert unpack_catalog(pack_catalog(told)) == told


@given(st.lists(st.tuples(LOG, LOG, st.binary(max_size=50))))
def test_messages_of_groups_are_read_again(groups: list[tuple[bytes, bytes, bytes]]) -> None:
    assert unpack_messages(b"".join(pack_messages(*group) for group in groups)) == groups


@given(st.lists(st.tuples(U64, U32, st.integers(0, 255), st.binary(max_size=50))))
def test_requests_are_read_again(requests: list[tuple[int, int, int, bytes]]) -> None:
    assert unpack_asked(b"".join(pack_asked(*request) for request in requests)) == requests


@given(st.lists(st.tuples(U64, st.integers(0, 255), st.binary(max_size=50))))
def test_answers_are_read_again(answers: list[tuple[int, int, bytes]]) -> None:
    assert unpack_answered(b"".join(pack_answered(*answer) for answer in answers)) == answers


@given(st.builds(Founding, st.integers(0, 255), U64, IDENTITY, LOG, st.binary(max_size=300)))
def test_a_step_of_the_founding_is_read_again(founding: Founding) -> None:
    assert unpack_founding(pack_founding(founding)) == founding


@pytest.mark.parametrize("reader", READERS)
@given(junk=st.binary(max_size=80))
def test_junk_gives_one_kind_of_error(reader: Callable[[bytes], object], junk: bytes) -> None:
    with suppress(MalformedPayloadError):
        assert reader(junk) is not None
