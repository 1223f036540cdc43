"""Commands that are families: CLIENT, CONFIG, CLUSTER and others choose what to do by their second word.

A family is a table from upper-case words to rows. How it refuses what is not in the table differs from one to another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from disqued.core.commands.command import Handler

ANY: Final = 1 << 20
"""As many words as a request may have."""


class Subcommand(NamedTuple):
    """One row: what to run for requests of `least` to `most` words, the command's own name and the row's included."""

    handler: Handler
    least: int = 2
    most: int = 2


def choose(table: Mapping[bytes, Subcommand], args: list[bytes]) -> Handler | None:
    """The handler for a request, None when there is no such subcommand or the number of words is wrong."""
    row = table.get(args[1].upper())
    if row is None or not row.least <= len(args) <= row.most:
        return None
    return row.handler
