"""A command: one row of the command table.

The dispatcher, COMMAND, the documentation and the completion of the command line read the table, which
`disqued.node.rooms` composes. A row is a constant that all nodes of a process share. What one node counts about a
command is in its `CommandEntry` (`commands.entry`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from disqued.config import Config
from disqued.config.options import REDACTED
from disqued.core.clients.session import Session

Handler: TypeAlias = Callable[[Any, Session, list[bytes]], None]
"""Gets the `NodeState` (which this package does not know), the session, and the words of the request."""


@dataclass(frozen=True)
class Command:
    """One command. `arity` is the number of words; a negative one is a minimum, 0 allows any number."""

    name: str
    arity: int
    flags: tuple[str, ...]
    handler: Handler
    group: str
    summary: str
    syntax: str = ""
    complexity: str = "O(1)"
    since: str = "1.0.0"
    needs_log: bool = False
    """Refused while the append-only file cannot be written."""
    needs_nothing: Callable[[Any, list[bytes]], bool] | None = None
    """Whether a request that would be refused because memory is short needs no memory."""
    may_follow: Callable[[Any, Session, list[bytes]], bool] | None = None
    """Whether a request may start while requests of the same client wait for their replies (`clients.pipeline`)."""
    secret_words: Callable[[Config, list[bytes]], Iterable[int]] | None = None
    """Returns the indexes of the words that are secret; MONITOR and the logs show REDACTED instead of them."""
    before_auth: bool = False
    """Allowed before AUTH. (Not in `flags`, because COMMAND shows the flags of the original.)"""
    most_words: int = 64
    """The most words of a request whose number is not fixed. Commands whose work is not in slices have a low bound."""
    allowed_paused: bool = False
    """Runs during CLIENT PAUSE: what a client needs in order to end the pause."""

    def redacted(self, config: Config, args: list[bytes]) -> list[bytes]:
        """The words of a request, without its secrets."""
        if self.secret_words is None:
            return args
        shown = list(args)
        for index in self.secret_words(config, args):
            shown[index] = REDACTED.encode()
        return shown
