"""Runs long commands (`core.commands.longcommand`) in slices."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.clients.session import REPLY_ON, Session
from disqued.core.commands.longcommand import LongCommand, LongWork
from disqued.core.runtime.failures import report_bug
from disqued.core.runtime.state import NodeState
from disqued.core.runtime.waiting import suspend, unblock, wants_reply
from disqued.errors import ReplyError

SLICE_NS: Final = 3_000_000
"""How long a slice takes, apart from its last step."""
MOST_PARTS: Final = 4096
"""A slice ends when it has appended this many parts of the reply, because writing them takes time too."""


def run_long(state: NodeState, session: Session, work: LongWork) -> None:
    """Run the first slice of a command now and, unless that completes it, the others after other input."""
    if _run_slice(state, session, work):
        command = LongCommand(session, work)
        suspend(state, command)
        state.long_commands.append(command)


def _run_slice(state: NodeState, session: Session, work: LongWork) -> bool:
    """Run steps of a command for a short time; False when it is done."""
    stopwatch_ns = state.host.stopwatch_ns
    until_ns: i64 = i64(stopwatch_ns()) + SLICE_NS
    parts: i64 = len(session.out) + MOST_PARTS
    while work.step(state, session):
        if work.waits() or i64(stopwatch_ns()) >= until_ns or len(session.out) > parts:
            return True
    return False


def next_long(state: NodeState) -> LongCommand | None:
    """The long command that runs next; None if there is none that may run now."""
    for command in state.long_commands:
        if _may_run(state, command) and not command.work.waits():
            return command
    return None


def _may_run(state: NodeState, command: LongCommand) -> bool:
    """Whether a command runs while the node is in this state."""
    if state.loading:
        return command.work.runs_while_loading
    return not state.ending or command.entry is None or command.entry.allowed_ending


def continue_long(state: NodeState) -> None:
    """Run the next slice of the long command that has waited longest, of those that may run now."""
    command = next_long(state)
    if command is None:
        return
    state.long_commands.remove(command)
    session = command.session
    if session.blocked is not command and not command.work.ends_without_client:
        return
    began_ns: i64 = state.host.stopwatch_ns()
    out = session.out
    kept = len(out)
    unfinished = False
    failed = True
    try:
        unfinished = _run_slice(state, session, command.work)
        failed = False
    except ReplyError as error:
        state.errors.add(error.code)
        out.append(error.encode())
    except Exception as bug:  # noqa: BLE001 - a bug in one command must not end the node
        state.errors.add("ERR")
        report_bug(state, f"{session.last_command.decode()} failed", bug)
        session.closing = True
    if session.reply_mode != REPLY_ON:
        del out[kept:]
    if state.ready.changes:
        state.ready.tell_changed(session)
    command.spent_ns += i64(state.host.stopwatch_ns()) - began_ns
    if unfinished:
        state.long_commands.append(command)
    else:
        _end(state, command, failed=failed)
    if out or session.closing:
        state.ready.flush(session)


def _end(state: NodeState, command: LongCommand, *, failed: bool) -> None:
    """Let the client continue, and count the command."""
    if command.session.blocked is command:
        unblock(state, command)
        wants_reply(command.session)  # skips a reply that the client asked to skip
    entry = command.entry
    if entry is None:
        return
    if failed:
        entry.failed += 1
        entry.done -= 1
    entry.latency.observe(command.spent_ns)
    if command.spent_ns >= state.monitoring.slow_ns:
        state.monitoring.note_slow(entry, command.words, command.spent_ns)
