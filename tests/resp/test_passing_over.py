"""A request without memory is passed over, and the requests after it are parsed normally."""

from __future__ import annotations

import random

import pytest

from disqued.resp.request import RequestParser

BODY = bytes(range(256)) * 500
REQUEST = b"*4\r\n$6\r\nADDJOB\r\n$4\r\nmail\r\n$%d\r\n%b\r\n$1\r\n0\r\n" % (len(BODY), BODY)
PING = b"*1\r\n$4\r\nPING\r\n"
HEAD = REQUEST.index(BODY)


@pytest.mark.parametrize("begun", [0, 1, 70_000, len(BODY) - 1, len(BODY), len(BODY) + 1])
@pytest.mark.parametrize("step", [1, 7, 4096, 1 << 20])
def test_request_is_passed_over_for_any_chunking(begun: int, step: int) -> None:
    parser = RequestParser()
    parser.feed(REQUEST[: HEAD + begun])
    assert parser.next() is None
    assert parser.argument_bytes == len(BODY)
    assert parser.coming_bytes == len(BODY) + 2 - begun
    parser.pass_over()
    assert parser.held_bytes < 1000
    rest = REQUEST[HEAD + begun :] + PING
    if step == 1:
        rest, end = rest[: -len(PING) - 20], rest[-len(PING) - 20 :]
        pieces = [rest, *[end[at : at + 1] for at in range(len(end))]]
    else:
        pieces = [rest[at : at + step] for at in range(0, len(rest), step)]
    found = []
    for piece in pieces:
        parser.feed(piece)
        assert parser.held_bytes < step + 40_000
        while (request := parser.next()) is not None:
            found.append((request, parser.passed_over))
            parser.passed_over = False
    assert found == [([b"ADDJOB", b"mail", b"", b"0"], True), ([b"PING"], False)]


def test_last_argument_of_a_request_is_passed_over() -> None:
    parser = RequestParser()
    parser.feed(b"*2\r\n$4\r\nECHO\r\n$100000\r\nxx")
    assert parser.next() is None
    parser.pass_over()
    parser.feed(b"x" * 99_998)
    assert parser.next() is None
    parser.feed(b"\r\n" + PING)
    assert parser.next() == [b"ECHO", b""]
    assert parser.next() == [b"PING"]


def test_big_argument_is_complete_for_any_chunking() -> None:
    chance = random.Random(5)
    for _ in range(200):
        cuts = sorted(chance.sample(range(1, len(REQUEST)), chance.randrange(1, 8)))
        if chance.random() < 0.5:
            cuts.append(HEAD + len(BODY) + chance.randrange(3))
            cuts.sort()
        parser = RequestParser()
        found = []
        for start, end in zip([0, *cuts], [*cuts, len(REQUEST)], strict=True):
            parser.feed(REQUEST[start:end] + (PING if end == len(REQUEST) else b""))
            while (request := parser.next()) is not None:
                found.append(request)
        assert found == [[b"ADDJOB", b"mail", BODY, b"0"], [b"PING"]]
        assert parser.held_bytes == 0
