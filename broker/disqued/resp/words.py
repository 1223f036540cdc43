r"""Splits lines into words, with the quoting of inline requests and configuration lines.

Words are separated by white space. The last part of a word can be in double quotes (escapes `\n \r \t \b \a \xHH`, a
backslash before any other character is that character) or in single quotes (`\'` is the only escape). The closing quote
ends the word and must be followed by white space or the end of the line (Disque protocol, "inline requests"). Lines
without quotes, the common case, are split at C speed; other lines take one match of a regular expression per word. The
expression is possessive, so the cost is linear for any input.
"""

from __future__ import annotations

import re
from typing import Final

_WORD: Final = re.compile(
    rb"""([^\s"']*)                              # the part before a quote, or the whole word
         (?: "( (?: [^"\\] | \\. )*+ )"          # the part in double quotes
           | '( (?: \\' | [^'] )*+ )' )?         # the part in single quotes
         (?: \s+ | \Z )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(rb"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_SPECIAL: Final = re.compile(rb'[^ -~]|["\\]')
_BLANKS: Final = b" \t\n\r\v\f"
_ESCAPED: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}
_QUOTED: Final = {value: b"\\" + letter for letter, value in _ESCAPED.items()} | {b'"': b'\\"', b"\\": b"\\\\"}


def split_words(line: bytes) -> list[bytes] | None:
    """Return the unquoted words of `line`, including empty quoted words; None if the quotes are unbalanced."""
    if b'"' not in line and b"'" not in line:
        return line.split()
    line = line.strip(_BLANKS)
    words: list[bytes] = []
    position = 0
    while position < len(line):
        match = _WORD.match(line, position)
        if match is None:
            return None
        plain, double, single = match.groups()
        if double is not None:
            plain += _ESCAPE.sub(_unescape, double) if b"\\" in double else double
        elif single is not None:
            plain += single.replace(b"\\'", b"'")
        words.append(plain)
        position = match.end()
    return words


def quote_word(word: bytes) -> bytes:
    """Quote `word` as printable ASCII in double quotes; the reverse of `split_words`."""
    return b'"' + _SPECIAL.sub(_escape, word) + b'"'


def shorten(words: list[bytes], max_words: int, max_bytes: int) -> list[bytes]:
    """The first `max_words` words, at most `max_bytes` of each, with notes about what is omitted."""
    short = [
        word if len(word) <= max_bytes else word[:max_bytes] + b"... (%d more bytes)" % (len(word) - max_bytes)
        for word in words[:max_words]
    ]
    if len(words) > max_words:
        short[-1] = b"... (%d more arguments)" % (len(words) - max_words + 1)
    return short


def _unescape(match: re.Match[bytes]) -> bytes:
    escaped = match[1]
    if len(escaped) == 3:
        return bytes([int(escaped[1:], 16)])
    return _ESCAPED.get(escaped, escaped)


def _escape(match: re.Match[bytes]) -> bytes:
    return _QUOTED.get(match[0]) or b"\\x%02x" % match[0][0]
