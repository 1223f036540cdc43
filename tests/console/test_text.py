"""Bytes become texts that hide nothing, and keys that lead back to the bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.console.text import MOST_FIELDS, fields_of, is_text, key_of, name_of, shown


@given(st.binary(max_size=50))
def test_a_key_leads_back_to_the_name(name: bytes) -> None:
    assert name_of(key_of(name)) == name
    assert fields_of(f"queue={key_of(name)}&x=1") == {"queue": name, "x": b"1"}
    assert key_of(name).isascii()


@given(st.binary(max_size=50))
def test_what_is_shown_can_be_printed(name: bytes) -> None:
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
def test_names_that_could_deceive_are_escaped(name: bytes, text: str) -> None:
    assert shown(name) == text


def test_lines_of_a_body_stay() -> None:
    assert shown(b"a\n\tb\r\n\x1b[31m", breaks=True) == "a\n\tb\\r\n\\x1b[31m"


@pytest.mark.parametrize(
    ("data", "text"), [(b"", True), (b"abc", True), ("€".encode(), True), ("€".encode()[:2], True), (b"\xffabc", False)]
)
def test_text_may_have_been_cut_within_a_character(data: bytes, text: bool) -> None:
    assert is_text(data) is text


def test_a_query_is_bounded() -> None:
    with pytest.raises(ValueError, match="fields"):
        fields_of("&".join(f"a{number}=1" for number in range(MOST_FIELDS + 1)))
