"""A command: one row of the command table.

The dispatcher, COMMAND, the documentation and the completion of the command line read the table, which
`disqued.node.rooms` composes. A row is a constant that all nodes of a process share. What one node counts about a
command is in its `CommandEntry` (`commands.entry`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from disqued.config import Config
from disqued.config.option import REDACTED
from disqued.core.clients.session import Session
from disqued.core.commands.subcommand import Handler, Subcommand


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
    needs_clock: bool = False
    """Refused while the clock of this node is too far ahead (quarantine)."""
    needs_nothing: Callable[[Any, list[bytes]], bool] | None = None
    """Whether a request that would be refused because memory is short needs no memory."""
    may_follow: Callable[[Any, Session, list[bytes]], bool] | None = None
    """Whether a request may start while requests of the same client wait for their replies (`clients.pipeline`)."""
    secret_words: Callable[[Config, list[bytes]], Iterable[int]] | None = None
    """Returns the indexes of the words that are secret; MONITOR and the logs show REDACTED instead of them."""
    queues: Callable[[Any, list[bytes]], Iterable[bytes]] | None = None
    """Returns the queues that a request touches, all of which the rules of the user must allow."""
    patterns: Callable[[Any, list[bytes]], Iterable[bytes]] | None = None
    """Returns the patterns of queues that a request touches: the rules of the user must allow all that match."""
    categories: tuple[str, ...] = ()
    """The categories of `access.catalogue` that it belongs to, besides `all`."""
    subcommands: Mapping[bytes, Subcommand] | None = None
    """Its table of subcommands, whose rows may have other categories."""
    audited: Callable[[list[bytes]], bool] | None = None
    """Returns whether the audit log shows a request, because it changes something; None for commands without such.

    The rows of subcommands may say it instead."""
    before_auth: bool = False
    """Allowed before AUTH. (Not in `flags`, because COMMAND shows the flags of the original.)"""
    most_words: int = 64
    """The most words of a request whose number is not fixed. Commands whose work is not in slices have a low bound."""
    allowed_paused: bool = False
    """Runs during CLIENT PAUSE: what a client needs in order to end the pause."""

    @property
    def keys(self) -> tuple[bytes, ...]:
        """How rules of users name it: `pause`; with subcommands `config` and each `config|get`."""
        name = self.name.encode()
        return (name, *[name + b"|" + word.lower() for word in self.subcommands or ()])

    def categories_of(self, key: bytes) -> tuple[str, ...]:
        """The categories of one of `keys`."""
        _, _, word = key.partition(b"|")
        row = (self.subcommands or {}).get(word.upper())
        return self.categories if row is None or row.categories is None else row.categories

    @property
    def may_be_audited(self) -> bool:
        """Whether the audit log shows some of its requests."""
        rows = self.subcommands or {}
        return self.audited is not None or any(row.audited is not None for row in rows.values())

    def is_audited(self, args: list[bytes]) -> bool:
        """Whether the audit log shows a request."""
        row = (self.subcommands or {}).get(args[1].upper()) if len(args) > 1 else None
        audited = self.audited if row is None or row.audited is None else row.audited
        return audited is not None and audited(args)

    def redacted(self, config: Config, args: list[bytes]) -> list[bytes]:
        """The words of a request, without its secrets."""
        if self.secret_words is None:
            return args
        shown = list(args)
        for index in self.secret_words(config, args):
            shown[index] = REDACTED.encode()
        return shown
