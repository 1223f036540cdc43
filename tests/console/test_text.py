"""Bytes are converted to readable text, and to keys that can be decoded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.console.text import MAX_FIELDS, fields_of, is_text, key_of, name_of, shown


@given(st.binary(max_size=50))
def test_key_round_trips(name: bytes) -> None:
    assert name_of(key_of(name)) == name
    assert fields_of(f"queue={key_of(name)}&x=1") == {"queue": name, "x": b"1"}
    assert key_of(name).isascii()


@given(st.binary(max_size=50))
def test_displayed_text_is_printable(name: bytes) -> None:
    assert shown(name).isprintable()
    assert set(shown(name, breaks=True)) - {"\n", "\t"} == set(
        shown(name, breaks=True).replace("\n", "").replace("\t", "")
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (b"mail", "mail"),
        ("größe 3 €".encode(), "größe 3 €"),
        (b"\xff\xfe", "\\xff\\xfe"),
        (b"a\x00b\r\nc", "a\\x00b\\r\\nc"),
        ("a\u202eb".encode(), "a\\u202eb"),
        ("a\u200bb".encode(), "a\\u200bb"),
        (b"<script>alert(1)</script>", "<script>alert(1)</script>"),
    ],
)
def test_deceptive_names_are_escaped(name: bytes, text: str) -> None:
    assert shown(name) == text


def test_line_ends_of_a_body_are_kept() -> None:
    assert shown(b"a\n\tb\r\n\x1b[31m", breaks=True) == "a\n\tb\\r\n\\x1b[31m"


@pytest.mark.parametrize(
    ("data", "text"), [(b"", True), (b"abc", True), ("€".encode(), True), ("€".encode()[:2], True), (b"\xffabc", False)]
)
def test_text_can_end_within_a_character(data: bytes, text: bool) -> None:
    assert is_text(data) is text


def test_query_fields_are_limited() -> None:
    with pytest.raises(ValueError, match="fields"):
        fields_of("&".join(f"a{number}=1" for number in range(MAX_FIELDS + 1)))
