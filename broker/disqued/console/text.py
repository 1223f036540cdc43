"""Names and bodies are bytes; here they become what JSON and people can read.

A name is given twice: `key`, which leads back to the bytes, and what is shown. Nothing that is shown can hide what it
is: bytes that are no UTF-8, control characters and characters that turn the direction of writing are escaped.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, quote_from_bytes, unquote_to_bytes

MOST_FIELDS: Final = 16
"""Of a query."""
_BREAKS: Final = frozenset("\n\t")


def key_of(name: bytes) -> str:
    """The bytes, percent-encoded as in a URL."""
    return quote_from_bytes(name, safe="")


def name_of(key: str) -> bytes:
    """The reverse of `key_of`."""
    return unquote_to_bytes(key.encode("utf-8", "replace"))


def shown(data: bytes, *, breaks: bool = False) -> str:
    """A text for people; with `breaks` the ends of lines and tabulators stay."""
    text = data.decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() or (breaks and one in _BREAKS) else one.encode("unicode_escape").decode()
        for one in text
    )


def is_text(data: bytes) -> bool:
    """Whether it is UTF-8, as far as it goes: its last character may have been cut."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.end == len(data) and error.reason == "unexpected end of data"
    return True


def fields_of(query: str) -> dict[str, bytes]:
    """What stands behind the question mark of an address; of a name that comes twice, the last."""
    pairs = parse_qsl(query, keep_blank_values=True, encoding="latin-1", max_num_fields=MOST_FIELDS)
    return {name: value.encode("latin-1") for name, value in pairs}
