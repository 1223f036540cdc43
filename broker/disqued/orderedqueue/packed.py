"""Arrays of 64-bit words, and their bytes in snapshots: little endian on every machine."""

from __future__ import annotations

import sys
from array import array
from typing import Final

from disqued.orderedqueue.encoding import Malformed

WORD_BYTES: Final = 8


def pack_words(words: array[int]) -> bytes:
    """The bytes of words."""
    if sys.byteorder == "big":
        words = words[:]
        words.byteswap()
    return words.tobytes()


def unpack_words(data: bytes) -> array[int]:
    """The words of bytes. Raises Malformed."""
    if len(data) % WORD_BYTES:
        raise Malformed("packed words end early")
    words = array("q")
    words.frombytes(data)
    if sys.byteorder == "big":
        words.byteswap()
    return words


def unpack_indexes(data: bytes) -> array[int]:
    """The indexes of bytes. Raises Malformed if they do not grow."""
    words = unpack_words(data)
    last = 0
    for word in words:
        if word <= last:
            raise Malformed("packed indexes do not grow")
        last = word
    return words
