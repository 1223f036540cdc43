"""Splitting lines into words, compared with the rules of inline requests and a simple second implementation."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from disqued.resp.words import quote_word, split_words

ESCAPES = {ord("n"): 10, ord("r"): 13, ord("t"): 9, ord("b"): 8, ord("a"): 7}

HEX = b"0123456789abcdefABCDEF"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"", []),
        (b" \t ", []),
        (b"  ping   hi  ", [b"ping", b"hi"]),
        (rb'PING "a b\x41\n"', [b"PING", b"a bA\n"]),
        (rb"PING 'it\'s'", [b"PING", b"it's"]),
        (rb"PING 'a\nb'", [b"PING", rb"a\nb"]),
        (b'PING ""', [b"PING", b""]),
        (b"'' \"\"", [b"", b""]),
        (b'a"b c" d', [b"ab c", b"d"]),
        (rb'"\"\\\q\xzz"', [b'"\\qxzz']),
        (rb"plain\n", [rb"plain\n"]),
        (b'dir "/tmp/a b"\r', [b"dir", b"/tmp/a b"]),
        (b'"a\nb"', [b"a\nb"]),
    ],
)
def test_words_are_split_and_unquoted(line: bytes, words: list[bytes]) -> None:
    assert split_words(line) == words


@pytest.mark.parametrize(
    "line", [b'PING "unbalanced', b'PING "a"b', b"'a'b", b"it's", rb'"open\"', rb"'open\'", b'"a""b"', b'"\\']
)
def test_unbalanced_quotes_are_refused(line: bytes) -> None:
    assert split_words(line) is None


LINES = st.lists(st.sampled_from([bytes([b]) for b in b"ab \t\"'\\xnf0\x00\n\xff"]), max_size=24).map(b"".join)


@given(LINES)
@example(rb"'a\' b")
def test_words_match_a_scan_by_character(line: bytes) -> None:
    assert split_words(line) == _scan(line)


@given(st.lists(st.binary()))
def test_quoted_words_round_trip(words: list[bytes]) -> None:
    line = b" ".join(map(quote_word, words))
    assert split_words(line) == words
    assert line.decode("ascii").isprintable()


def test_long_lines_take_linear_time() -> None:
    started_s = time.monotonic()
    assert split_words(b'"' + b"\\" * 1_000_000) is None
    assert split_words(b"'" + b"\\'" * 500_000) is None
    assert split_words(b'a"' * 500_000) is None
    assert split_words(b'"" ' * 100_000) == [b""] * 100_000
    assert time.monotonic() - started_s < 5


def _scan(line: bytes) -> list[bytes] | None:
    words: list[bytes] = []
    at = 0
    while True:
        while at < len(line) and line[at : at + 1].isspace():
            at += 1
        if at == len(line):
            return words
        word = bytearray()
        while at < len(line) and not line[at : at + 1].isspace():
            if line[at] not in b"\"'":
                word.append(line[at])
                at += 1
                continue
            end = _scan_quoted(line, at, word)
            if end is None or not (end == len(line) or line[end : end + 1].isspace()):
                return None
            at = end
        words.append(bytes(word))


def _scan_quoted(line: bytes, at: int, word: bytearray) -> int | None:
    quote = line[at]
    at += 1
    while at < len(line):
        if line[at] == quote:
            return at + 1
        if quote == ord("'"):
            if line[at : at + 2] == b"\\'":
                at += 1
        elif line[at] == ord("\\"):
            pair = line[at + 2 : at + 4]
            if line[at + 1 : at + 2] == b"x" and len(pair) == 2 and not pair.strip(HEX):
                word.append(int(pair, 16))
                at += 4
                continue
            at += 1
            if at == len(line):
                return None
            word.append(ESCAPES.get(line[at], line[at]))
            at += 1
            continue
        word.append(line[at])
        at += 1
    return None
