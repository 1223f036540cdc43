"""Which requests the audit log shows (`Command.audited`), and how they are recorded.

A handler of an audited command is wrapped when the node makes its table of commands, so other commands pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

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
    command = entry.command
    file, user, audited = state.audit.file, session.user, command.audited
    if file is None or user is None or audited is None:
        return
    if entry.accepts(len(args)) and audited(args):
        words = command.redacted(state.config, args)
        file.add(state.audit.line(user.name, session.address, tls=session.tls, words=words, outcome=outcome))


def note_last(state: NodeState, command: Command, session: Session, args: list[bytes]) -> None:
    """Record a request that ends the process at once, and wait until the record is written."""
    file, user = state.audit.file, session.user
    if file is not None and user is not None:
        words = command.redacted(state.config, args)
        file.add(state.audit.line(user.name, session.address, tls=session.tls, words=words, outcome=STARTED))
        file.flush()


class Audited:
    """Runs the requests of an audited command, and records those that succeed; the dispatcher records the others."""

    def __init__(self, command: Command) -> None:
        self._command = command
        self._handler = command.handler
        self._audited: Callable[[list[bytes]], bool] | None = command.audited

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
        if (before is None and after is None) or self._audited is None or not self._audited(args):
            return
        ends = session.blocked is not None and session.blocked is not waiting
        line = state.audit.line(
            b"" if user is None else user.name,
            session.address,
            tls=session.tls,
            words=self._command.redacted(state.config, args),
            outcome=STARTED if ends else OK,
        )
        if after is not None:
            after.add(line)
        if before is not None and before is not after:
            before.add(line)
            before.close()


def always(_args: list[bytes]) -> bool:
    """Every request of a command is audited (`Command.audited`)."""
    return True
