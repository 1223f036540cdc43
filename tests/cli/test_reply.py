"""Replies from the wire: what was written is read, whatever is cut off is noticed, junk is one kind of error."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.cli.reply import Failure, Pairs, Reply, ReplyFormatError, Status, encode_request, read_reply

LINE = st.binary(max_size=20).filter(lambda data: not set(data) & {10, 13})


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


LEAF: st.SearchStrategy[Reply] = st.one_of(
    LINE.map(Status), LINE.map(Failure), st.binary(max_size=50), st.integers(), st.booleans(), st.none()
)
REPLY: st.SearchStrategy[Reply] = st.recursive(
    LEAF, lambda inner: st.one_of(st.lists(inner, max_size=4), st.lists(st.tuples(inner, inner), max_size=3).map(Pairs))
)


@given(REPLY)
def test_a_reply_is_read_as_written(reply: Reply) -> None:
    source = io.BytesIO(written(reply) + b"+next\r\n")
    read = read_reply(source)
    assert read == reply
    assert type(read) is type(reply)
    assert read_reply(source) == b"next"


@given(REPLY, st.data())
def test_a_reply_that_is_cut_off_is_the_end_of_the_connection(reply: Reply, data: st.DataObject) -> None:
    whole = written(reply)
    length = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(EOFError):
        read_reply(io.BytesIO(whole[:length]))


@given(st.binary(max_size=60))
def test_junk_is_an_error_of_one_kind_or_a_reply(junk: bytes) -> None:
    source = io.BytesIO(junk)
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
def test_the_other_types_of_both_protocol_versions_are_known(wire: bytes, reply: Reply) -> None:
    assert read_reply(io.BytesIO(wire)) == reply


def test_another_protocol_on_the_port_is_told_from_a_reply() -> None:
    with pytest.raises(ReplyFormatError, match="Not a reply of a Disque server: b'HTTP"):
        read_reply(io.BytesIO(b"HTTP/1.1 400 Bad Request\r\n"))


def test_a_request_is_an_array_of_strings() -> None:
    assert encode_request([b"QLEN", b"a b", b""]) == b"*3\r\n$4\r\nQLEN\r\n$3\r\na b\r\n$0\r\n\r\n"
