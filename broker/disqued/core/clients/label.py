"""Labels: what connections and client libraries may call themselves.

They show up as words of CLIENT LIST, so that blanks and line ends would break it.
"""

from __future__ import annotations

from typing import Final

from disqued.errors import ReplyError

_FIRST: Final = ord("!")
_LAST: Final = ord("~")


def require_label(text: bytes, subject: str) -> bytes:
    """The text, if it can stand in a line of CLIENT LIST; ReplyError names the subject otherwise."""
    if not all(_FIRST <= character <= _LAST for character in text):
        raise ReplyError(f"ERR {subject} cannot contain spaces, newlines or special characters.")
    return text


def require_client_name(text: bytes) -> bytes:
    """The text, if a connection may be called so; ReplyError otherwise."""
    return require_label(text, "Client names")
