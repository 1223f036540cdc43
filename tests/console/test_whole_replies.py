"""What a connection writes is read back, in any cut, without more of long strings than is wanted."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.console.wholereplies import Beginning, Failure, Reply, read_replies

CASES = [
    (b"+OK\r\n", [b"OK"]),
    (b":-12\r\n", [-12]),
    (b"-ERR no\r\n", [Failure("ERR no")]),
    (b"-ERR \xff\r\n", [Failure("ERR \\xff")]),
    (b"$-1\r\n*-1\r\n", [None, None]),
    (b"$0\r\n\r\n", [b""]),
    (b"$5\r\na\r\nbc\r\n", [b"a\r\nbc"]),
    (b"*2\r\n$1\r\na\r\n*2\r\n:1\r\n$-1\r\n", [[b"a", [1, None]]]),
    (b"", []),
]


@pytest.mark.parametrize(("written", "replies"), CASES)
def test_replies_are_read(written: bytes, replies: list[Reply]) -> None:
    assert read_replies([written], 100) == replies
    assert read_replies([bytes((byte,)) for byte in written], 100) == replies


@given(st.binary(max_size=300), st.lists(st.integers(0, 400), max_size=6), st.integers(0, 300))
def test_of_a_long_string_the_beginning_is_taken(body: bytes, cuts: list[int], most: int) -> None:
    written = b"*2\r\n$%d\r\n%b\r\n:7\r\n" % (len(body), body)
    edges = [0, *sorted(min(cut, len(written)) for cut in cuts), len(written)]
    parts = [written[start:end] for start, end in pairwise(edges)]
    expected = body if len(body) <= most else Beginning(body[:most], len(body))
    assert read_replies(parts, most) == [[expected, 7]]


@pytest.mark.parametrize(
    "written", [b"+OK", b"$5\r\nabc", b"*2\r\n:1\r\n", b"$3\r\nabc", b"%1\r\n:1\r\n:2\r\n", b"$x\r\n"]
)
def test_what_is_no_whole_reply_is_an_error(written: bytes) -> None:
    with pytest.raises(ValueError, match=r"not whole|no replies that begin|invalid literal"):
        read_replies([written], 100)
