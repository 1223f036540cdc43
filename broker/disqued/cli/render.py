r"""Formats replies in the four output formats of the command line.

* readable (`--no-raw`, the default on a terminal): with types, quoted strings, numbered and indented arrays.
* raw (`--raw`, the default in a pipe): unquoted values, joined by the delimiter; nil is empty.
* CSV: quoted values; nested arrays are flattened into one record.
* JSON: strings, numbers, null and arrays as on the wire, `{"error": "..."}` for an error, an object for a RESP3 map.
  Strings are decoded as UTF-8. An invalid byte becomes the lone surrogate `\udcXX`, which Python's `surrogateescape`
  turns into the byte again, so no information is lost.

All formats are bytes, because bodies of jobs need not be text. Replies that are reports (`PLAIN_REPORTS`) are printed
unchanged.
"""

from __future__ import annotations

import json
from enum import Enum
from typing import TYPE_CHECKING

from disqued.resp.replies import Failure, Pairs, Reply, Status
from disqued.resp.words import quote_word

if TYPE_CHECKING:
    from collections.abc import Callable

PLAIN_REPORTS = {
    (b"info",),
    (b"cluster", b"nodes"),
    (b"cluster", b"info"),
    (b"client", b"list"),
    (b"latency", b"graph"),
    (b"latency", b"doctor"),
}
"""First words, in lower case, of the commands whose reply is a human-readable report."""


class Form(Enum):
    """An output format."""

    READABLE = "readable"
    RAW = "raw"
    CSV = "csv"
    JSON = "json"


def render(reply: Reply, form: Form, delimiter: bytes = b"\n") -> bytes:
    """Format the reply, with a line end; `delimiter` separates array elements in the raw format."""
    return _FORMS[form](reply, delimiter)


def render_for(words: list[bytes], reply: Reply, form: Form, delimiter: bytes = b"\n") -> bytes:
    """Format the reply to the command `words`: like `render`, but a report is not quoted."""
    if form is not Form.JSON and type(reply) is bytes and is_plain_report(words):
        return reply
    return render(reply, form, delimiter)


def is_plain_report(words: list[bytes]) -> bool:
    """Whether the reply to the command is a human-readable report."""
    first, second = (word.lower() for word in [*words, b""][:2])
    return not PLAIN_REPORTS.isdisjoint({(first,), (first, second)})


def number(value: float) -> bytes:
    """Format a number or a boolean."""
    return str(value).lower().encode()


def _readable(reply: Reply, indent: bytes) -> bytes:
    match reply:
        case Status():
            return reply + b"\n"
        case bytes():
            return quote_word(reply) + b"\n"
        case None:
            return b"(nil)\n"
        case Failure(text):
            return b"(error) " + text + b"\n"
        case bool() | float():
            return b"(" + type(reply).__name__.encode() + b") " + number(reply) + b"\n"
        case int():
            return b"(integer) %d\n" % reply
        case Pairs() | list():
            return _readable_items(_elements(reply), indent)


def _readable_items(items: list[Reply], indent: bytes) -> bytes:
    if not items:
        return b"(empty list or set)\n"
    width = len(str(len(items)))
    inner = indent + b" " * (width + 2)
    lines = [b"%*d) " % (width, position) + _readable(item, inner) for position, item in enumerate(items, 1)]
    return indent.join(lines)


def _elements(reply: Pairs | list[Reply]) -> list[Reply]:
    return [side for pair in reply.items for side in pair] if isinstance(reply, Pairs) else reply


def _raw(reply: Reply, delimiter: bytes) -> bytes:
    match reply:
        case bytes():
            return reply
        case None:
            return b""
        case Failure(text):
            return text + b"\n"
        case int() | float():
            return number(reply)
        case Pairs() | list():
            return delimiter.join(_raw(item, delimiter) for item in _elements(reply))


def _csv(reply: Reply) -> bytes:
    match reply:
        case bytes():
            return quote_word(reply)
        case None:
            return b"NIL"
        case Failure(text):
            return b"ERROR," + quote_word(text)
        case int() | float():
            return number(reply)
        case Pairs() | list():
            return b",".join(_csv(item) for item in _elements(reply))


def text(data: bytes) -> str:
    """Decode bytes for JSON and tables: UTF-8, other bytes as lone surrogates."""
    return data.decode("utf-8", "surrogateescape")


def as_json(reply: Reply) -> object:
    """Convert the reply to values that `json` can encode."""
    match reply:
        case bytes():
            return text(reply)
        case Failure(message):
            return {"error": text(message)}
        case list():
            return [as_json(item) for item in reply]
        case Pairs(items):
            return {text(key) if isinstance(key, bytes) else str(key): as_json(value) for key, value in items}
        case _:
            return reply


_FORMS: dict[Form, Callable[[Reply, bytes], bytes]] = {
    Form.READABLE: lambda reply, _: _readable(reply, b""),
    Form.RAW: lambda reply, delimiter: _raw(reply, delimiter) + b"\n",
    Form.CSV: lambda reply, _: _csv(reply) + b"\n",
    Form.JSON: lambda reply, _: json.dumps(as_json(reply)).encode() + b"\n",
}
