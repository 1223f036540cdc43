"""How requests are recorded that the audit log shows (`Command.audited`).

A handler of an audited command is wrapped when the node makes its table of commands, so other commands pay nothing.
"""

from __future__ import annotations

from typing import Final

from disqued.core.access.user import User
from disqued.core.clients.session import Session
from disqued.core.commands.command import Command
from disqued.core.commands.entry import CommandEntry
from disqued.core.runtime.state import NodeState

OK: Final = "ok"
STARTED: Final = "started"
"""The outcome of a command that continues, or that ends the process."""


def note(state: NodeState, entry: CommandEntry, session: Session, args: list[bytes], outcome: str) -> None:
    """Record a request of a session that is logged in, if the audit log shows such requests.

    Refusals before a login are left out, so that clients without a password cannot fill the disk.
    """
    file, user = state.audit.file, session.user
    if file is not None and user is not None and entry.accepts(len(args)) and entry.command.is_audited(args):
        file.add(_record(state, entry.command, session, user, args, outcome))


def note_last(state: NodeState, command: Command, session: Session, args: list[bytes]) -> None:
    """Record a request that ends the process at once, and wait until the record is written."""
    file, user = state.audit.file, session.user
    if file is not None and user is not None:
        file.add(_record(state, command, session, user, args, STARTED))
        state.audit.flush()


def _record(
    state: NodeState, command: Command, session: Session, user: User | None, args: list[bytes], outcome: str
) -> bytes:
    """The record of a request, without its secrets."""
    name = b"" if user is None else user.name
    words = command.redacted(state.config, args)
    return state.audit.line(name, session.address, tls=session.tls, words=words, outcome=outcome)


class Audited:
    """Runs the requests of an audited command, and records those that succeed; the dispatcher records the others."""

    def __init__(self, command: Command) -> None:
        self._command = command
        self._handler = command.handler

    def run(self, state: NodeState, session: Session, args: list[bytes]) -> None:
        """The handler of the command.

        What is recorded is who the session was before the command, which may end it. The request that switches to
        another file is in both files.
        """
        before = state.audit.file
        waiting = session.blocked
        user = session.user
        self._handler(state, session, args)
        after = state.audit.file
        if (before is None and after is None) or not self._command.is_audited(args):
            return
        ends = session.blocked is not None and session.blocked is not waiting
        record = _record(state, self._command, session, user, args, STARTED if ends else OK)
        if after is not None:
            after.add(record)
        if before is not None and before is not after:
            before.add(record)
            before.close()


def always(_args: list[bytes]) -> bool:
    """Every request of a command or subcommand is audited (`Command.audited`)."""
    return True
