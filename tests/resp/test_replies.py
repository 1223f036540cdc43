"""One reader for both kinds of source: streams that block, and chunks in memory."""

from __future__ import annotations

import io
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.resp.replies import (
    Failure,
    Pairs,
    Reply,
    ReplyFormatError,
    Status,
    StreamSource,
    Truncated,
    read_replies,
    read_reply,
)

LINE = st.binary(max_size=20).filter(lambda data: not set(data) & {10, 13})
NO_LIMIT = 1 << 20


def written(reply: Reply) -> bytes:
    match reply:
        case Status():
            return b"+" + reply + b"\r\n"
        case Failure(text):
            return b"-" + text + b"\r\n"
        case bytes():
            return b"$%d\r\n%b\r\n" % (len(reply), reply)
        case bool():
            return b"#t\r\n" if reply else b"#f\r\n"
        case int():
            return b":%d\r\n" % reply
        case None:
            return b"_\r\n"
        case list():
            return b"*%d\r\n" % len(reply) + b"".join(map(written, reply))
        case Pairs(items):
            return b"%%%d\r\n" % len(items) + b"".join(written(side) for pair in items for side in pair)
        case _:
            raise AssertionError(reply)


def stream(data: bytes) -> StreamSource:
    return StreamSource(io.BytesIO(data))


def chunks(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


CUTS = st.lists(st.integers(0, 400), max_size=6)
LEAF: st.SearchStrategy[Reply] = st.one_of(
    LINE.map(Status), LINE.map(Failure), st.binary(max_size=50), st.integers(), st.booleans(), st.none()
)
REPLY: st.SearchStrategy[Reply] = st.recursive(
    LEAF, lambda inner: st.one_of(st.lists(inner, max_size=4), st.lists(st.tuples(inner, inner), max_size=3).map(Pairs))
)


@given(REPLY)
def test_reply_is_read_from_a_stream_with_its_type(reply: Reply) -> None:
    source = stream(written(reply) + b"+next\r\n")
    read = read_reply(source)
    assert read == reply
    assert type(read) is type(reply)
    assert read_reply(source) == b"next"


@given(st.lists(REPLY, max_size=3), CUTS)
def test_replies_are_read_from_chunks_of_any_size(replies: list[Reply], cuts: list[int]) -> None:
    read = read_replies(chunks(b"".join(map(written, replies)), cuts), NO_LIMIT)
    assert read == replies
    assert list(map(type, read)) == list(map(type, replies))


@given(REPLY, st.data())
def test_incomplete_reply_is_the_end_of_the_input(reply: Reply, data: st.DataObject) -> None:
    whole = written(reply)
    beginning = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(EOFError):
        read_reply(stream(beginning))
    if beginning:
        with pytest.raises(EOFError):
            read_replies([beginning], NO_LIMIT)


@given(st.binary(max_size=300), CUTS, st.integers(0, 300))
def test_long_string_is_truncated_and_its_length_is_kept(body: bytes, cuts: list[int], max_bytes: int) -> None:
    ((read, following),) = read_replies(chunks(written([body, 7]), cuts), max_bytes)  # type: ignore[misc]
    assert (read, following) == (body[:max_bytes], 7)
    if len(body) > max_bytes:
        assert isinstance(read, Truncated)
        assert read.size_bytes == len(body)
    else:
        assert type(read) is bytes


@given(st.binary(max_size=60))
def test_invalid_bytes_raise_no_other_error(junk: bytes) -> None:
    source = stream(junk)
    try:
        while True:
            read_reply(source)
    except (EOFError, ReplyFormatError):
        pass


@pytest.mark.parametrize(
    ("wire", "reply"),
    [
        (b"$-1\r\n", None),
        (b"*-1\r\n", None),
        (b",1.5\r\n", 1.5),
        (b"(123456789012345678901\r\n", 123456789012345678901),
        (b"=8\r\ntxt:text\r\n", b"text"),
        (b"!5\r\nERR x\r\n", Failure(b"ERR x")),
        (b"~1\r\n:1\r\n", [1]),
        (b">1\r\n:1\r\n", [1]),
    ],
)
def test_other_types_of_both_protocol_versions_are_read(wire: bytes, reply: Reply) -> None:
    assert read_reply(stream(wire)) == reply


def test_error_message_escapes_bytes_that_are_not_text() -> None:
    assert Failure(b"ERR \xff").message == "ERR \\xff"


@pytest.mark.parametrize("wire", [b"HTTP/1.1 400 Bad Request\r\n", b"$x\r\n", b"+OK\n"])
def test_other_protocol_is_an_error_with_its_first_line(wire: bytes) -> None:
    with pytest.raises(ReplyFormatError, match="Not a reply of a Disque server: b'"):
        read_reply(stream(wire))
