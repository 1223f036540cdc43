"""Glob patterns of CONFIG GET."""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqued.config.glob import Glob, glob_match


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        (b"*", b""),
        (b"*", b"port"),
        (b"max*", b"maxmemory"),
        (b"*mem*ory", b"maxmemory"),
        (b"h?", b"hz"),
        (b"[hp]*", b"port"),
        (b"[a-h]z", b"hz"),
        (b"[h-a]z", b"hz"),
        (b"[^a-g]z", b"hz"),
        (b"[^]z", b"hz"),
        (rb"[\]]", b"]"),
        (rb"[a\-c]", b"-"),
        (b"[hp", b"h"),
        (rb"\*", b"*"),
        (b"a\\", b"a\\"),
        (b"a**b*", b"ab"),
    ],
)
def test_pattern_matches(pattern: bytes, name: bytes) -> None:
    assert glob_match(pattern, name)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        (b"", b"port"),
        (b"MAX*", b"maxmemory"),
        (b"port", b"ports"),
        (b"ports", b"port"),
        (b"h?", b"h"),
        (b"[hp]z", b"az"),
        (b"[^h]z", b"hz"),
        (b"[]h", b"h"),
        (rb"[a\-c]", b"b"),
        (rb"\*", b"x"),
        (b"a*b", b"abc"),
    ],
)
def test_pattern_does_not_match(pattern: bytes, name: bytes) -> None:
    assert not glob_match(pattern, name)


@given(st.binary(max_size=8), st.binary(max_size=8))
def test_an_escaped_name_between_stars_is_found_anywhere(name: bytes, other: bytes) -> None:
    escaped = b"".join(b"\\%c" % byte for byte in name)
    assert glob_match(escaped, name)
    assert glob_match(b"*" + escaped + b"*", other + name + other)
    assert glob_match(escaped, other) == (name == other)


@given(
    st.lists(st.sampled_from([b"*", b"?", b"[", b"]", b"^", b"-", b"\\", b"a", b"b"]), max_size=12),
    st.binary(max_size=8),
)
def test_any_pattern_is_matched(parts: list[bytes], name: bytes) -> None:
    assert glob_match(b"".join(parts), name) in {True, False}


def test_many_stars_take_no_exponential_time() -> None:
    started_s = time.monotonic()
    assert not glob_match(b"*a" * 50 + b"b", b"a" * 500)
    assert time.monotonic() - started_s < 5


class Watched(bytes):
    """A name that knows how many of its bytes were looked at."""

    looks = 0

    def __getitem__(self, index: Any) -> Any:
        self.looks += 1
        return super().__getitem__(index)


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [(b"mail:*", True), (b"*:eu", True), (b"*:us", False), (b"mail:*:e?", True), (b"web:*", False)],
)
def test_what_the_last_star_matches_is_not_looked_at(pattern: bytes, matches: bool) -> None:
    name = Watched(b"mail:" + b"x" * 1000 + b":eu")
    assert glob_match(pattern, name) == matches
    assert name.looks <= len(pattern)


def test_patterns_take_little_memory() -> None:
    """A cluster may have thousands of patterns of a thousand bytes."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = [Glob(b"%d" % number + b"abcdefgh" * 125) for number in range(100)]
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / len(kept) < 12_000


def test_a_name_without_the_literal_part_of_a_pattern_is_not_looked_at() -> None:
    name = Watched(b"aaaa" * 200)
    for number in range(100):
        assert not Glob(b"*aa*:part%d:*" % number).matches(name)
    assert name.looks == 0
    assert Glob(b"*[ab]*\\*?").matches(b"xa*c")
