"""COMMAND: the command table as clients and their tools read it.

In the third protocol version an entry has the ten elements of Redis 7, the last four of them empty, because clients of
that version rely on them. The first six are always those of Disque.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.admin.syntax import read_syntax
from disqued.core.clients.session import RESP2
from disqued.core.commands.command import Command
from disqued.core.commands.subcommand import Subcommand, choose
from disqued.errors import ReplyError
from disqued.resp.limits import MAX_ARGUMENTS

if TYPE_CHECKING:
    from disqued.admin.syntax import Argument
    from disqued.core.clients.session import Session
    from disqued.core.commands.entry import CommandEntry
    from disqued.core.runtime.state import NodeState

MAX_NAMES: Final = 256
"""The most names in one request; the help of one takes 20 microseconds."""
_KEY_POSITIONS: Final = 3
"""First key, last key, step: all 0, since queues are not keys."""
_REDIS_EXTRAS: Final = 4
"""Access categories, hints, key descriptions, subcommands."""


def command(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with the whole table, or run the subcommand."""
    if len(args) == 1:
        _reply_entries(session, _present(state))
        return
    handler = choose(_SUBCOMMANDS, args)
    if handler is None:
        raise ReplyError("ERR Unknown subcommand or wrong number of arguments.")
    handler(state, session, args)


def _present(state: NodeState) -> list[CommandEntry]:
    """The commands that were not removed by `rename-command`, in table order."""
    reachable = {entry.name for entry in state.commands.values()}
    return [entry for entry in state.command_entries if entry.name in reachable]


def _named(state: NodeState, names: list[bytes]) -> list[CommandEntry | None]:
    """Commands by the names they are called by."""
    return [state.commands.get(name.lower()) for name in names]


def _reply_entries(session: Session, entries: list[CommandEntry] | list[CommandEntry | None]) -> None:
    session.reply_array(len(entries))
    for entry in entries:
        if entry is None:
            session.reply_null()
        else:
            _reply_entry(session, entry)


def _reply_entry(session: Session, entry: CommandEntry) -> None:
    extras = 0 if session.protocol == RESP2 else _REDIS_EXTRAS
    row = entry.command
    session.reply_array(3 + _KEY_POSITIONS + extras)
    session.reply_bulk(entry.name)
    session.reply_integer(row.arity)
    session.reply_array(len(row.flags))
    for flag in row.flags:
        session.reply_status(flag.encode())
    for _ in range(_KEY_POSITIONS):
        session.reply_integer(0)
    for _ in range(extras):
        session.reply_array(0)


def _count(state: NodeState, session: Session, _args: list[bytes]) -> None:
    session.reply_integer(len(_present(state)))


def _info(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with an entry for each name; null for unknown names."""
    _reply_entries(session, _named(state, args[2:]))


def _list(state: NodeState, session: Session, _args: list[bytes]) -> None:
    entries = _present(state)
    session.reply_array(len(entries))
    for entry in entries:
        session.reply_bulk(entry.name)


def _docs(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with a map from names to their help; unknown names are omitted."""
    entries = [entry for entry in _named(state, args[2:]) if entry is not None] if len(args) > 2 else _present(state)
    session.reply_map(len(entries))
    for entry in entries:
        row = entry.command
        session.reply_bulk(entry.name)
        arguments = read_syntax(row.syntax)
        texts = (("summary", row.summary), ("since", row.since), ("group", row.group), ("complexity", row.complexity))
        session.reply_map(len(texts) + bool(arguments))
        for name, text in texts:
            session.reply_bulk(name.encode())
            session.reply_bulk(text.encode())
        if arguments:
            _reply_arguments(session, arguments)


def _reply_arguments(session: Session, arguments: tuple[Argument, ...]) -> None:
    """The pair of the word `arguments` and a list of maps."""
    session.reply_bulk(b"arguments")
    session.reply_array(len(arguments))
    for argument in arguments:
        marks = ((b"optional", argument.optional), (b"multiple", argument.repeated))
        flags = [flag for flag, is_set in marks if is_set]
        texts = [("name", argument.name), ("type", argument.kind), ("token", argument.token)]
        texts = [(name, text) for name, text in texts if text]
        session.reply_map(len(texts) + bool(flags) + bool(argument.parts))
        for name, text in texts:
            session.reply_bulk(name.encode())
            session.reply_bulk(text.encode())
        if flags:
            session.reply_bulk(b"flags")
            session.reply_array(len(flags))
            for flag in flags:
                session.reply_status(flag)
        if argument.parts:
            _reply_arguments(session, argument.parts)


_SUBCOMMANDS: Final = {
    b"COUNT": Subcommand(_count),
    b"DOCS": Subcommand(_docs, 2, 2 + MAX_NAMES),
    b"INFO": Subcommand(_info, 2, 2 + MAX_NAMES),
    b"LIST": Subcommand(_list),
}

COMMAND: Final[Command] = Command(
    "command",
    0,
    ("readonly", "loading"),
    command,
    "server",
    "Describes the commands of this server.",
    "[COUNT | DOCS [name ...] | INFO [name ...] | LIST]",
    "O(commands)",
    most_words=MAX_ARGUMENTS,
    categories=("connection",),
    subcommands=_SUBCOMMANDS,
)
