"""Changes valid input at random: what a broken network, a broken program or an attacker might send."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

_INTERESTING: Final = (
    *(b"\r\n", b"\r", b"\n", b"\x00", b"\xff", b" ", b"*", b"$", b"-1", b"0", b"1", b"DbuZ", b"HTTP/1.1", b":", b'"'),
    *(b"2147483647", b"4294967296", b"9223372036854775807", b"18446744073709551615", b"\xff\xff\xff\xff", b"\x7f\xff"),
)
_MAX_BYTES: Final = 1 << 16
"""Longer input is cut: it would slow the run down and find little."""


class Mutator:
    """Makes inputs from samples. Equal seeds make equal inputs."""

    def __init__(self, samples: Sequence[bytes], chance: Random) -> None:
        self._samples = samples
        self._chance = chance
        self._ways: tuple[Callable[[bytes], bytes], ...] = (
            self._flip,
            self._replace,
            self._insert,
            self._remove,
            self._repeat,
            self._cut,
            self._splice,
        )

    def next(self) -> bytes:
        """The next input: a sample with up to five changes."""
        data = self._chance.choice(self._samples)
        for _ in range(self._chance.randrange(6)):
            data = self._chance.choice(self._ways)(data)
        return data[:_MAX_BYTES]

    def _at(self, data: bytes) -> int:
        return self._chance.randrange(len(data) + 1)

    def _flip(self, data: bytes) -> bytes:
        """Change one bit."""
        if not data:
            return data
        at = self._chance.randrange(len(data))
        return data[:at] + bytes((data[at] ^ 1 << self._chance.randrange(8),)) + data[at + 1 :]

    def _replace(self, data: bytes) -> bytes:
        """Overwrite some bytes with an interesting value."""
        at, value = self._at(data), self._chance.choice(_INTERESTING)
        return data[:at] + value + data[at + len(value) :]

    def _insert(self, data: bytes) -> bytes:
        at = self._at(data)
        return data[:at] + self._chance.choice(_INTERESTING) + data[at:]

    def _remove(self, data: bytes) -> bytes:
        at = self._at(data)
        return data[:at] + data[at + self._chance.randrange(1, 50) :]

    def _repeat(self, data: bytes) -> bytes:
        at = self._at(data)
        return data[:at] + data[at : at + self._chance.randrange(1, 200)] * self._chance.randrange(2, 20) + data[at:]

    def _cut(self, data: bytes) -> bytes:
        return data[: self._at(data)]

    def _splice(self, data: bytes) -> bytes:
        """Continue with the end of another sample."""
        other = self._chance.choice(self._samples)
        return data[: self._at(data)] + other[self._at(other) :]
