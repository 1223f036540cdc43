"""Converts names and bodies, which are bytes, to text for JSON and for the page.

A name has two forms: `key`, which encodes the bytes, and the text that is displayed. The displayed text cannot deceive:
bytes that are not UTF-8, control characters and characters that change the text direction are escaped.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, quote_from_bytes, unquote_to_bytes

MAX_FIELDS: Final = 16
"""Maximum number of fields in a query."""
_BREAKS: Final = frozenset("\n\t")


def key_of(name: bytes) -> str:
    """Encode the bytes with percent signs, as in a URL."""
    return quote_from_bytes(name, safe="")


def name_of(key: str) -> bytes:
    """Decode a key; the reverse of `key_of`."""
    return unquote_to_bytes(key.encode("utf-8", "replace"))


def shown(data: bytes, *, breaks: bool = False) -> str:
    """Return the text to display; with `breaks`, line ends and tabs are not escaped."""
    text = data.decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() or (breaks and one in _BREAKS) else one.encode("unicode_escape").decode()
        for one in text
    )


def is_text(data: bytes) -> bool:
    """Whether the bytes are UTF-8; the last character may be truncated."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.end == len(data) and error.reason == "unexpected end of data"
    return True


def fields_of(query: str) -> dict[str, bytes]:
    """Parse a query string; of duplicate names, the last one counts."""
    pairs = parse_qsl(query, keep_blank_values=True, encoding="latin-1", max_num_fields=MAX_FIELDS)
    return {name: value.encode("latin-1") for name, value in pairs}
