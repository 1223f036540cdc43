"""SLOWLOG: the latest slow commands, from `disqued.core.telemetry.slowlog`."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from disqued.core.commands.command import Command
from disqued.core.commands.subcommand import Subcommand, choose
from disqued.core.runtime.audit import always
from disqued.errors import ReplyError
from disqued.resp.integers import require_integer

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState

_SHOWN_ENTRIES: Final = 10


def slowlog(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Run the subcommand."""
    handler = choose(_SUBCOMMANDS, args)
    if handler is None:
        raise ReplyError("ERR Unknown SLOWLOG subcommand or wrong # of args. Try GET, RESET, LEN.")
    handler(state, session, args)


def _get(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with entries, newest first: number, unix time, microseconds, words. A negative count means all entries."""
    wanted = require_integer(args[2]) if len(args) == 3 else _SHOWN_ENTRIES
    entries = state.monitoring.slowlog.entries
    shown = len(entries) if wanted < 0 else min(wanted, len(entries))
    session.reply_array(shown)
    for entry in islice(entries, shown):
        session.reply_array(4)
        session.reply_integer(entry.number)
        session.reply_integer(entry.at_s)
        session.reply_integer(entry.spent_us)
        session.reply_array(len(entry.arguments))
        for argument in entry.arguments:
            session.reply_bulk(argument)


def _len(state: NodeState, session: Session, _args: list[bytes]) -> None:
    session.reply_integer(len(state.monitoring.slowlog.entries))


def _reset(state: NodeState, session: Session, _args: list[bytes]) -> None:
    state.monitoring.slowlog.entries.clear()
    session.reply_ok()


_SUBCOMMANDS: Final = {
    b"GET": Subcommand(_get, 2, 3),
    b"LEN": Subcommand(_len, categories=("inspect", "admin")),
    b"RESET": Subcommand(_reset, audited=always),
}

COMMAND: Final[Command] = Command(
    "slowlog",
    -2,
    ("readonly",),
    slowlog,
    "server",
    "Shows, counts or forgets the latest slow commands.",
    "GET [count] | LEN | RESET",
    "O(entries)",
    categories=("admin", "dangerous"),
    subcommands=_SUBCOMMANDS,
)
