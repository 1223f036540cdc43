"""The request parser: what it accepts, what it refuses, and that the chunking makes no difference."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from disqued.errors import ProtocolError
from disqued.resp.limits import MAX_ARGUMENTS, MAX_BULK_BYTES, MAX_LINE_BYTES
from disqued.resp.request import RequestParser
from disqued.testing.local import encode

Outcome = tuple[list[list[bytes]], str | None]
"""The parsed requests, and the text of the protocol error that ended them, if any."""

LINE_OF_BLANKS = b" " * (MAX_LINE_BYTES + 1)


def parse(*chunks: bytes, parser: RequestParser | None = None) -> Outcome:
    """Feed the chunks one by one, and read all requests after each."""
    parser = parser or RequestParser()
    requests: list[list[bytes]] = []
    try:
        for chunk in chunks:
            parser.feed(chunk)
            while (request := parser.next()) is not None:
                requests.append(request)
    except ProtocolError as error:
        return requests, error.text
    return requests, None


def by_the_byte(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Split the data at the given positions."""
    edges = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


ACCEPTED = {
    "a multi bulk request": (b"*2\r\n$4\r\nPING\r\n$2\r\nhi\r\n", [[b"PING", b"hi"]]),
    "an empty argument": (b"*2\r\n$4\r\nPING\r\n$0\r\n\r\n", [[b"PING", b""]]),
    "line ends inside an argument": (b"*1\r\n$4\r\n\r\n\r\n\r\n", [[b"\r\n\r\n"]]),
    "any two bytes after an argument": (b"*2\r\n$1\r\naXY$1\r\nb\0\0", [[b"a", b"b"]]),
    "any byte after the CR of a header": (b"*1\r_$1\r_a\r\n", [[b"a"]]),
    "an empty request is skipped": (b"*0\r\n*1\r\n$1\r\na\r\n", [[b"a"]]),
    "a negative request is skipped": (b"*-1\r\n*-99\r\n*1\r\n$1\r\na\r\n", [[b"a"]]),
    "an inline request": (b"PING hi\r\n", [[b"PING", b"hi"]]),
    "an inline request with a bare LF": (b"PING\nPING x\n", [[b"PING"], [b"PING", b"x"]]),
    "blank lines are skipped": (b"\r\n  \t\r\nPING\r\n", [[b"PING"]]),
    "quotes in an inline request": (rb"""PING "a\x41 b" 'c\'d'""" + b"\r\n", [[b"PING", b"aA b", b"c'd"]]),
    "empty quoted words are removed": (b'PING "" x\r\n""\r\nPING\r\n', [[b"PING", b"x"], [b"PING"]]),
    "both kinds on one connection": (
        b"PING\r\n*1\r\n$4\r\nINFO\r\nTIME\r\n",
        [[b"PING"], [b"INFO"], [b"TIME"]],
    ),
    "a NUL in an inline word": (b"a\0b c\r\n", [[b"a\0b", b"c"]]),
}


@pytest.mark.parametrize(("data", "requests"), ACCEPTED.values(), ids=ACCEPTED)
def test_requests_are_parsed_for_any_chunking(data: bytes, requests: list[list[bytes]]) -> None:
    assert parse(data) == (requests, None)
    assert parse(*by_the_byte(data)) == (requests, None)
    assert parse(data + b"*1\r\n$9\r\nunfin") == (requests, None)
    assert parse(data + b"unfinished line") == (requests, None)


REFUSED = {
    "a count that is not a number": (b"*x\r\n", "invalid multibulk length"),
    "a count with a plus": (b"*+1\r\n", "invalid multibulk length"),
    "a count with a blank": (b"* 1\r\n", "invalid multibulk length"),
    "a count with a leading zero": (b"*01\r\n", "invalid multibulk length"),
    "a count of minus zero": (b"*-0\r\n", "invalid multibulk length"),
    "an empty count": (b"*\r\n", "invalid multibulk length"),
    "too many arguments": (b"*%d\r\n" % (MAX_ARGUMENTS + 1), "invalid multibulk length"),
    "a count beyond 64 bits": (b"*99999999999999999999999\r\n", "invalid multibulk length"),
    "an argument without a header": (b"*1\r\nPING\r\n", "expected '$', got 'P'"),
    "an argument that is a line end": (b"*1\r\n\r\n", "expected '$', got ' '"),
    "an argument that begins with a high byte": (b"*1\r\n\xff", "expected '$', got '\xff'"),
    "a length that is not a number": (b"*1\r\n$x\r\n", "invalid bulk length"),
    "a negative length": (b"*1\r\n$-1\r\n", "invalid bulk length"),
    "a length with a leading zero": (b"*1\r\n$04\r\n", "invalid bulk length"),
    "a length beyond the limit": (b"*1\r\n$%d\r\n" % (MAX_BULK_BYTES + 1), "invalid bulk length"),
    "an invalid second argument": (b"*2\r\n$1\r\na\r\n:1\r\n", "expected '$', got ':'"),
    "open double quotes": (b'PING "a\r\n', "unbalanced quotes in request"),
    "open single quotes": (b"PING 'a\r\n", "unbalanced quotes in request"),
    "text after a closing quote": (b'PING "a"b\r\n', "unbalanced quotes in request"),
    "an inline request without an end": (b"P" + LINE_OF_BLANKS, "too big inline request"),
    "a request header without an end": (b"*" + LINE_OF_BLANKS, "too big mbulk count string"),
    "an argument header without an end": (b"*1\r\n$" + LINE_OF_BLANKS, "too big bulk count string"),
}


@pytest.mark.parametrize(("data", "text"), REFUSED.values(), ids=REFUSED)
def test_invalid_request_is_refused_for_any_chunking(data: bytes, text: str) -> None:
    good = b"*1\r\n$4\r\nPING\r\n"
    assert parse(data) == ([], text)
    assert parse(data + b"\r\njunk $5 *\x00\xff\r\n") == ([], text)
    assert parse(good + data) == ([[b"PING"]], text)
    if len(data) < MAX_LINE_BYTES:
        assert parse(*by_the_byte(data)) == ([], text)


@pytest.mark.parametrize("head", [b"*%d\r\n" % MAX_ARGUMENTS, b"*1\r\n$%d\r\n" % MAX_BULK_BYTES])
def test_values_at_the_limits_are_allowed(head: bytes) -> None:
    assert parse(head) == ([], None)


def test_line_of_maximum_length_is_a_request() -> None:
    words = b"a " * (MAX_LINE_BYTES // 2)
    assert parse(words + b"\n") == ([[b"a"] * (MAX_LINE_BYTES // 2)], None)
    assert parse(words + b" \n") == ([], "too big inline request")


def test_huge_argument_is_refused_at_its_header() -> None:
    parser = RequestParser()
    assert parse(b"*1\r\n$%d\r\n" % (MAX_BULK_BYTES + 1), parser=parser) == ([], "invalid bulk length")
    assert parser.buffered_bytes < 32


def test_limits_are_lower_before_authentication() -> None:
    def restricted() -> RequestParser:
        parser = RequestParser()
        parser.restrict(unauthenticated=True)
        return parser

    assert parse(encode(*range(10)), parser=restricted())[1] is None
    assert parse(b"*11\r\n", parser=restricted()) == ([], "invalid multibulk length")
    assert parse(b"*100\r\n", parser=restricted()) == ([], "invalid multibulk length")
    assert parse(encode("AUTH", b"x" * 16384), parser=restricted())[1] is None
    assert parse(b"*2\r\n$4\r\nAUTH\r\n$16385\r\n", parser=restricted()) == ([], "invalid bulk length")


def test_limits_are_restored_after_authentication() -> None:
    parser = RequestParser()
    parser.restrict(unauthenticated=True)
    parser.restrict(unauthenticated=False)
    words = [b"x" * 20000] * 20
    assert parse(encode(*words), parser=parser) == ([words], None)


def test_input_is_counted_until_its_request_is_complete() -> None:
    parser = RequestParser()
    request = encode("ADDJOB", b"queue", b"x" * 1000, b"0")
    for at in range(len(request) - 1):
        parser.feed(request[at : at + 1])
        assert parser.next() is None
        assert at - 3 <= parser.buffered_bytes <= at + 1, "includes arguments of an incomplete request"
    parser.feed(request[-1:])
    assert parser.next() is not None
    assert parser.buffered_bytes == 0


def test_parser_can_be_used_after_discard() -> None:
    parser = RequestParser()
    assert parse(b"*3\r\n$1\r\na\r\n$5\r\nab", parser=parser) == ([], None)
    parser.discard()
    assert parser.buffered_bytes == 0
    assert parse(b"PING\r\n", parser=parser) == ([[b"PING"]], None)


def copied_bytes(chunks: list[bytes]) -> int:
    """Count the bytes that the parser copied into new buffers: a new buffer object is a copy of all its bytes."""
    parser = RequestParser()
    copied = 0
    for chunk in chunks:
        before = parser._buffer
        parser.feed(chunk)
        while parser.next() is not None:
            pass
        if parser._buffer is not before and parser._buffer is not chunk:
            copied += len(parser._buffer)
    assert parser.buffered_bytes == 0
    return copied


@pytest.mark.parametrize("chunk_bytes", [100, 1460, 65536])
def test_long_argument_is_joined_once_for_any_number_of_pieces(chunk_bytes: int) -> None:
    request = encode("ADDJOB", "queue", b"x" * 2_000_000, 0)
    chunks = [request[at : at + chunk_bytes] for at in range(0, len(request), chunk_bytes)]
    assert copied_bytes(chunks) < 1.1 * len(request)


def test_many_small_requests_are_copied_at_most_once() -> None:
    stream = encode("PING", b"x" * 20) * 5000
    chunks = [stream[at : at + 1000] for at in range(0, len(stream), 1000)]
    assert copied_bytes(chunks) < 2 * len(stream)


ARGUMENTS = st.binary(max_size=40) | st.binary(min_size=200, max_size=300)
REQUESTS = st.lists(st.lists(ARGUMENTS, min_size=1, max_size=5), max_size=5)
CUTS = st.lists(st.integers(0, 3000), max_size=12)


@given(REQUESTS, CUTS)
def test_any_requests_are_parsed_for_any_chunking(requests: list[list[bytes]], places: list[int]) -> None:
    data = b"".join(encode(*request) for request in requests)
    assert parse(*cut(data, places)) == (requests, None)


PIECES = st.sampled_from(
    [b"*", b"$", b"1", b"2", b"0", b"-", b"\r\n", b"\r", b"\n", b"a", b'"', b"'", b" ", b"\\", b"\0", b"\xff", b"PING"]
)
JUNK = st.lists(PIECES, max_size=40).map(b"".join) | st.binary(max_size=100)


@given(JUNK, CUTS)
@example(b"*1\r\n$1\r\n\r", [9])
@example(b"*-1\r", [4])
def test_any_bytes_give_requests_or_one_protocol_error_for_any_chunking(data: bytes, places: list[int]) -> None:
    whole = parse(data)
    assert parse(*cut(data, places)) == whole
    assert parse(*by_the_byte(data)) == whole
    assert all(request for request in whole[0]), "a request without words was returned"


def test_error_is_one_line_with_the_invalid_value() -> None:
    assert ProtocolError("expected '$', got '\xff'").encode() == b"-ERR Protocol error: expected '$', got '\xff'\r\n"
