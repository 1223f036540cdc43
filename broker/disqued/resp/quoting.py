"""Words shown to people: bytes in double quotes with escapes, as MONITOR streams them and the command line shows them."""

from __future__ import annotations

from typing import Final

_ESCAPES: Final = {
    ord('"'): b'\\"',
    ord("\\"): b"\\\\",
    ord("\n"): b"\\n",
    ord("\r"): b"\\r",
    ord("\t"): b"\\t",
    ord("\a"): b"\\a",
    ord("\b"): b"\\b",
}
_SHOWN: Final = [
    _ESCAPES.get(byte, bytes((byte,)) if 32 <= byte < 127 else b"\\x%02x" % byte) for byte in range(256)
]


def quote(word: bytes) -> bytes:
    """The word in double quotes; `split_words` reads it back."""
    return b'"' + b"".join([_SHOWN[byte] for byte in word]) + b'"'
