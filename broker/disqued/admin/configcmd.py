"""CONFIG: shows the configuration, changes it at run time, and writes it to its file.

`disqued.config` defines which values a directive takes. The room that owns a directive applies changes of it, in the
events `config_changing` and `config_changed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.config.option import REDACTED
from disqued.core.commands.command import Command
from disqued.core.commands.subcommand import Subcommand, choose
from disqued.core.runtime import configfile
from disqued.core.runtime.audit import always
from disqued.errors import ReplyError, shown

if TYPE_CHECKING:
    from disqued.config import Config
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState


def config(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Run the subcommand."""
    handler = choose(_SUBCOMMANDS, args)
    if handler is not None:
        handler(state, session, args)
    elif args[1].upper() in _SUBCOMMANDS:
        raise ReplyError(f"ERR Wrong number of arguments for CONFIG {shown(args[1])}")
    else:
        raise ReplyError("ERR CONFIG subcommand must be one of GET, SET, RESETSTAT, REWRITE")


def _get(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Names and values of the directives that match a glob."""
    try:
        directory = state.host.working_directory()
    except OSError:
        directory = ""  # it was removed
    state.config.assign("dir", directory)
    found = state.config.get(args[2])
    session.reply_map(len(found))
    for name, value in found:
        option = state.config.option(name.decode())
        hidden = option is not None and option.secret and value and not session.unrestricted
        session.reply_bulk(name)
        session.reply_bulk(REDACTED.encode() if hidden else value)


def _set(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Change one directive."""
    attribute, value = state.config.parse(args[2], args[3])
    state.events.config_changing(attribute, value)
    state.config.assign(attribute, value)
    state.events.config_changed(attribute)
    session.reply_ok()


def _resetstat(state: NodeState, session: Session, _args: list[bytes]) -> None:
    """Reset all counters."""
    state.counters.reset()
    for entry in state.command_entries:
        entry.reset()
    session.reply_ok()


def _rewrite(state: NodeState, session: Session, _args: list[bytes]) -> None:
    rewrite_config_file(state)
    session.reply_ok()


def rewrite_config_file(state: NodeState) -> None:
    """Write the configuration to the file that the server was started with. Raises ReplyError."""
    try:
        written = configfile.rewrite(state)
    except OSError as error:
        raise ReplyError(f"ERR Rewriting config file: {error.strerror}") from error
    if not written:
        raise ReplyError("ERR The server is running without a config file")


def _secret_words(config: Config, args: list[bytes]) -> range:
    """The value of a secret directive, and all values of a request that is wrong: the directive may be mistyped."""
    word = args[1].upper() if len(args) > 1 else b""
    if word in _SUBCOMMANDS and word != b"SET":
        return range(0)
    option = config.option(args[2].decode("utf-8", "surrogateescape").lower()) if len(args) == 4 else None
    return range(3, len(args)) if option is None or option.secret else range(0)


_SUBCOMMANDS: Final = {
    b"GET": Subcommand(_get, 3, 3, categories=("inspect", "admin")),
    b"SET": Subcommand(_set, 4, 4, audited=always),
    b"RESETSTAT": Subcommand(_resetstat, audited=always),
    b"REWRITE": Subcommand(_rewrite, audited=always),
}

COMMAND: Final[Command] = Command(
    "config",
    -2,
    ("readonly", "admin"),
    config,
    "server",
    "Shows or changes the configuration, resets statistics, rewrites the configuration file.",
    "GET pattern | SET name value | RESETSTAT | REWRITE",
    "O(directives)",
    secret_words=_secret_words,
    categories=("admin", "dangerous"),
    subcommands=_SUBCOMMANDS,
)
