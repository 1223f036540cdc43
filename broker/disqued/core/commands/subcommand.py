"""Subcommands: CLIENT, CONFIG, CLUSTER and others select a handler by their second word.

Each of these commands has a table from upper-case words to rows. The error for an unknown word differs between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from disqued.core.clients.session import Session

Handler: TypeAlias = Callable[[Any, Session, list[bytes]], None]
"""Gets the `NodeState` (which this package does not know), the session, and the words of the request."""

ANY: Final = 1 << 20
"""No maximum: more words than a request may have."""


class Subcommand(NamedTuple):
    """One row: the handler for requests of `least` to `most` words, the names of command and subcommand included."""

    handler: Handler
    least: int = 2
    most: int = 2
    categories: tuple[str, ...] | None = None
    """The categories of the subcommand; None for those of its command."""
    audited: Callable[[list[bytes]], bool] | None = None
    """Returns whether the audit log shows a request; None for what its command says (`Command.audited`)."""


def choose(table: Mapping[bytes, Subcommand], args: list[bytes]) -> Handler | None:
    """The handler for a request, None when there is no such subcommand or the number of words is wrong."""
    row = table.get(args[1].upper())
    if row is None or not row.least <= len(args) <= row.most:
        return None
    return row.handler
