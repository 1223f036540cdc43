"""Checks names of connections and of client libraries.

They are words in the lines of CLIENT LIST, so blanks and line ends would break it.
"""

from __future__ import annotations

from typing import Final

from disqued.errors import ReplyError

_FIRST: Final = ord("!")
_LAST: Final = ord("~")
MAX_LABEL_BYTES: Final = 256
"""CLIENT LIST shows the names of all connections."""


def require_label(text: bytes, subject: str) -> bytes:
    """Return the text if it can be a word of CLIENT LIST; otherwise raise ReplyError, which names the subject."""
    if len(text) > MAX_LABEL_BYTES:
        raise ReplyError(f"ERR {subject} can have at most {MAX_LABEL_BYTES} bytes, {len(text)} were given")
    if not all(_FIRST <= character <= _LAST for character in text):
        raise ReplyError(f"ERR {subject} cannot contain spaces, newlines or special characters.")
    return text


def require_client_name(text: bytes) -> bytes:
    """Return the text if it is a valid name of a connection; otherwise raise ReplyError."""
    return require_label(text, "Client names")
