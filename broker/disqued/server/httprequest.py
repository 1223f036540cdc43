"""What the HTTP port checks of a request before it reads the rest."""

from __future__ import annotations

import re
from typing import Final

import h11

from disqued.httproutes import CONTENT_TOO_LARGE, LENGTH_REQUIRED

MOST_BYTES: Final = 8 << 10
"""The maximum size of a request line with its headers."""
_HEAD_ENDS: Final = re.compile(rb"\n\r?\n")
_NO_BODY: Final = "this page accepts no request body"
_NO_LENGTH: Final = "the request needs a Content-Length header"


def is_long(data: bytes) -> bool:
    """Whether the request line and the headers do not end within the bytes that one request may have."""
    return _HEAD_ENDS.search(data, 0, 2 * MOST_BYTES) is None


def path_of(asked: h11.Request) -> str:
    """The path without the query."""
    return asked.target.decode("ascii", "replace").partition("?")[0]


def length_of(asked: h11.Request) -> int:
    """The announced length of the body."""
    return int(dict(asked.headers).get(b"content-length", b"0"))


def refuse_body(asked: h11.Request, most_bytes: int) -> tuple[int, str] | None:
    """Why the body of a request is refused; None if it is accepted or there is none."""
    fields = dict(asked.headers)
    chunked = b"transfer-encoding" in fields
    length = length_of(asked)
    if most_bytes == 0:
        return (CONTENT_TOO_LARGE, _NO_BODY) if chunked or length else None
    if chunked:
        return LENGTH_REQUIRED, _NO_LENGTH
    return (
        (CONTENT_TOO_LARGE, f"request body too large; this page accepts {most_bytes} bytes")
        if length > most_bytes
        else None
    )
