"""The reply writer, checked with hiredis, the parser of the Redis project."""

from __future__ import annotations

from collections.abc import Callable

import hiredis
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from disqued.errors import ReplyError
from disqued.resp import writer


def read(data: bytes) -> object:
    """Decode exactly one reply."""
    reader = hiredis.Reader()
    reader.feed(data)
    reply = reader.gets()
    assert not reader.has_data(), "more than one reply"
    return reply


@given(st.integers(-(1 << 63), (1 << 63) - 1))
@example(1023)
@example(1024)
@example(-1)
def test_integers_round_trip(value: int) -> None:
    assert read(writer.integer(value)) == value


@given(st.binary(max_size=2000))
@example(b"x" * 1023)
@example(b"x" * 1024)
def test_bulk_strings_round_trip(value: bytes) -> None:
    assert read(writer.bulk(value)) == value
    assert read(writer.bulk_header(len(value)) + value + writer.CRLF) == value


@pytest.mark.parametrize("length", [0, 1, 1023, 1024, 5000])
def test_arrays_round_trip(length: int) -> None:
    assert read(writer.array_header(length) + writer.integer(7) * length) == [7] * length


@pytest.mark.parametrize("null", [writer.NULL_BULK, writer.NULL_ARRAY, writer.NULL_RESP3])
def test_all_nulls_are_decoded_as_null(null: bytes) -> None:
    assert read(null) is None


def test_simple_strings_round_trip() -> None:
    assert read(writer.OK) == b"OK"
    assert read(writer.status(b"PONG")) == b"PONG"


@given(st.text(st.characters(codec="utf-8")))
def test_error_is_one_line_for_any_text(text: str) -> None:
    reply = read(ReplyError("ERR " + text).encode())
    assert isinstance(reply, hiredis.ReplyError)
    assert ReplyError("ERR " + text).code == "ERR"


def test_error_keeps_bytes_that_are_not_text() -> None:
    name = b"\xff\r\n\xfe".decode("utf-8", "surrogateescape")
    assert ReplyError(f"ERR unknown command '{name}'").encode() == b"-ERR unknown command '\xff  \xfe'\r\n"


@pytest.mark.parametrize("encoder", [writer.bulk_header, writer.array_header, writer.integer])
def test_cached_and_uncached_numbers_are_equal(encoder: Callable[[int], bytes]) -> None:
    assert all(encoder(number)[1:-2] == b"%d" % number for number in (0, 9, 1022, 1023, 1024, 1025, 10**9))


def test_request_is_an_array_of_strings() -> None:
    assert writer.request([b"QLEN", b"a b", b""]) == b"*3\r\n$4\r\nQLEN\r\n$3\r\na b\r\n$0\r\n\r\n"
