"""DEBUG: commands for tests and emergencies: drop all jobs, sleep, restart, crash."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from disqued.admin.configcmd import rewrite_config_file
from disqued.core.commands.command import Command
from disqued.core.commands.subcommand import Subcommand, choose
from disqued.core.memory.accounting import CLIENT_BYTES, JOB_BYTES, QUEUE_BYTES
from disqued.core.runtime.audit import always, note_last
from disqued.core.runtime.flush import flush_all
from disqued.core.runtime.shutdown import end
from disqued.errors import ReplyError, shown
from disqued.resp.integers import require_integer

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState


def debug(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Run the subcommand."""
    handler = choose(_SUBCOMMANDS, args)
    if handler is None:
        word = shown(args[1])
        raise ReplyError(f"ERR Unknown DEBUG subcommand or wrong number of arguments for '{word}'")
    handler(state, session, args)


def _flushall(state: NodeState, session: Session, _args: list[bytes]) -> None:
    flush_all(state)
    session.reply_ok()


def _loadaof(state: NodeState, session: Session, _args: list[bytes]) -> None:
    """Drop all jobs, and load them from the append-only file."""
    error = state.events.reload(session)
    if error:
        raise ReplyError(f"ERR The append only file can't be loaded: {error}")


def _sleep(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Block the whole server for some seconds."""
    try:
        seconds = float(args[2])
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise ReplyError("ERR DEBUG SLEEP takes a number of seconds, 0 or more")
    state.host.sleep(seconds)
    session.reply_ok()


def _error(_state: NodeState, _session: Session, args: list[bytes]) -> None:
    """Reply with the error given."""
    raise ReplyError(args[2].decode("utf-8", "surrogateescape"))


def _structsize(_state: NodeState, session: Session, _args: list[bytes]) -> None:
    """Reply with the bytes that memory accounting counts for a job, a queue and a client."""
    session.reply_bulk(b"bits:64 job:%d queue:%d client:%d " % (JOB_BYTES, QUEUE_BYTES, CLIENT_BYTES))


def _restart(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Restart after a clean shutdown, with the current configuration."""
    delay_ms = _delay_ms(args)
    if state.host.read_config() is not None:
        rewrite_config_file(state)
    _restart_process(state, session, delay_ms, graceful=True)


def _crash_and_recover(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Restart without a clean shutdown."""
    delay_ms = _delay_ms(args)
    note_last(state, COMMAND, session, args)
    _restart_process(state, session, delay_ms, graceful=False)


def _delay_ms(args: list[bytes]) -> int:
    return max(require_integer(args[2]), 0) if len(args) == 3 else 0


def _restart_process(state: NodeState, session: Session, delay_ms: int, *, graceful: bool) -> None:
    if (graceful and not end(state)) or not state.host.restart(delay_ms, graceful):
        state.ended = False
        raise ReplyError("ERR failed to restart the server. Check server logs.")
    session.closing = True


def _crash(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Crash the process in the way that the subcommand names."""
    note_last(state, COMMAND, session, args)
    state.host.crash(args[1].decode().lower())


_SUBCOMMANDS: Final = {
    b"FLUSHALL": Subcommand(_flushall),
    b"LOADAOF": Subcommand(_loadaof),
    b"SLEEP": Subcommand(_sleep, 3, 3),
    b"ERROR": Subcommand(_error, 3, 3),
    b"STRUCTSIZE": Subcommand(_structsize),
    b"RESTART": Subcommand(_restart, 2, 3),
    b"CRASH-AND-RECOVER": Subcommand(_crash_and_recover, 2, 3),
    b"SEGFAULT": Subcommand(_crash),
    b"OOM": Subcommand(_crash),
    b"ASSERT": Subcommand(_crash),
}

COMMAND: Final[Command] = Command(
    "debug",
    -2,
    ("admin",),
    debug,
    "server",
    "Deletes everything, sleeps, restarts or crashes the server.",
    "FLUSHALL | LOADAOF | SLEEP seconds | ERROR text | STRUCTSIZE | RESTART [ms] | CRASH-AND-RECOVER [ms] | SEGFAULT | "
    "OOM | ASSERT",
    audited=always,
    categories=("admin", "dangerous"),
)
