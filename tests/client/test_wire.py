"""Encoding of requests, decoding of replies."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.client.errors import QueuePaused, ResponseError
from disqued.client.wire import Decoder, MalformedReplyError, encode, to_bytes, to_text

ANSWERS = b"+PONG\r\n:7\r\n$-1\r\n*-1\r\n$4\r\na\r\nb\r\n*2\r\n:1\r\n-ERR inner\r\n-PAUSED later\r\n"


def test_request_is_an_array_of_bulk_strings() -> None:
    assert (
        encode(("ADDJOB", b"q\r\n", 0, -5, "ü"))
        == b"*5\r\n$6\r\nADDJOB\r\n$3\r\nq\r\n\r\n$1\r\n0\r\n$2\r\n-5\r\n$2\r\n\xc3\xbc\r\n"
    )


@given(st.binary())
def test_names_of_any_bytes_survive_a_round_trip(name: bytes) -> None:
    assert to_bytes(to_text(name)) == name


@given(st.lists(st.integers(0, len(ANSWERS))))
def test_replies_do_not_depend_on_how_bytes_are_chunked(cuts: list[int]) -> None:
    decoder = Decoder()
    edges = [0, *sorted(cuts), len(ANSWERS)]
    replies = [reply for start, end in itertools.pairwise(edges) for reply in decoder.feed(ANSWERS[start:end])]
    assert replies[:5] == [b"PONG", 7, None, None, b"a\r\nb"]
    one, inner = replies[5]  # type: ignore[misc]
    assert (one, type(inner), str(inner)) == (1, ResponseError, "ERR inner")
    assert isinstance(replies[6], QueuePaused)


def test_bytes_that_are_not_resp_are_an_error() -> None:
    with pytest.raises(MalformedReplyError):
        Decoder().feed(b"HTTP/1.1 400 Bad Request\r\n")
