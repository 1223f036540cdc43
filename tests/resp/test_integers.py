"""Integers in arguments are parsed like C's `strtoll` applied to the whole word."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.errors import NotAnInteger, ReplyError
from disqued.resp.integers import parse_integer, require_integer, require_timeout_ms

TAKEN = {
    b"0": 0,
    b"": 0,
    b"7": 7,
    b"+5": 5,
    b"-5": -5,
    b"007": 7,
    b"-0": 0,
    b"999999999999999999": 999999999999999999,
    b"9223372036854775807": (1 << 63) - 1,
    b"-9223372036854775808": -(1 << 63),
    b"0" * 40 + b"9": 9,
}
REFUSED = [
    *(b" 1", b"1 ", b"+", b"-", b"--1", b"+-1", b"1.0", b"0x10", b"1e3", b"a", b"\xb2", b"1_0"),
    *(b"9223372036854775808", b"-9223372036854775809", b"9" * 5000),
]


@pytest.mark.parametrize(("word", "value"), TAKEN.items())
def test_integers_are_parsed(word: bytes, value: int) -> None:
    assert parse_integer(word) == value
    assert require_integer(word) == value


@pytest.mark.parametrize("word", REFUSED)
def test_invalid_integers_are_refused(word: bytes) -> None:
    assert parse_integer(word) is None
    with pytest.raises(NotAnInteger, match="ERR value is not an integer or out of range"):
        require_integer(word)


@given(st.integers(-(1 << 70), 1 << 70))
def test_only_64_bit_integers_are_valid(value: int) -> None:
    assert parse_integer(b"%d" % value) == (value if -(1 << 63) <= value < 1 << 63 else None)


@given(st.binary(max_size=6) | st.text("0123456789+- ", max_size=6).map(str.encode))
def test_integer_is_an_optional_sign_and_digits(word: bytes) -> None:
    is_number = word == b"" or re.fullmatch(rb"[+-]?[0-9]+", word) is not None
    assert parse_integer(word) == (int(word or b"0") if is_number else None)


@pytest.mark.parametrize(
    ("word", "text"),
    [(b"x", "ERR timeout is not an integer or out of range"), (b"-1", "ERR timeout is negative")],
)
def test_invalid_timeouts_have_their_own_errors(word: bytes, text: str) -> None:
    with pytest.raises(ReplyError) as caught:
        require_timeout_ms(word)
    assert caught.value.text == text


def test_timeout_of_zero_means_none() -> None:
    assert require_timeout_ms(b"0") == 0
    assert require_timeout_ms(b"1500") == 1500
