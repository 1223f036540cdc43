"""Runs the requests of clients, or refuses them.

A client's requests run one after another until its input ends, a command blocks, or the connection must be closed.
Requests of clients that are blocked, paused or have too many unread replies wait in the parser of their session.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from disqued.core.clients.session import REPLY_OFF, REPLY_ON, REPLY_SKIP, Session
from disqued.core.commands.entry import CommandEntry
from disqued.core.commands.longcommand import LongCommand
from disqued.core.memory.accounting import BIG_BYTES, COPIES_UNDER_WAY, EVICTION
from disqued.core.runtime.audit import note
from disqued.core.runtime.authentication import refuse_later
from disqued.core.runtime.authorization import authorize
from disqued.core.runtime.clientlimits import ClientLimits
from disqued.core.runtime.counters import REQUESTS_REFUSED_UNREAD
from disqued.core.runtime.failures import report_bug
from disqued.core.runtime.memorymonitor import make_room, make_room_for
from disqued.core.runtime.state import NodeState
from disqued.core.runtime.waiting import close_behind, reply_behind
from disqued.errors import (
    TOO_BIG,
    Loading,
    LoginRefused,
    NodeEnding,
    OutOfMemory,
    ProtocolError,
    ReplyError,
    WrongArity,
    shown,
)
from disqued.resp.limits import MAX_QUERY_BYTES

PARTS_PER_CHECK: Final = 100
"""The client's unread output is checked again after this many parts of replies."""


TURN_NS: Final = 10_000_000
"""After this time, the further requests that a client has sent wait until other clients had a turn."""
HTTP_NAMES: Final = (b"post", b"host:")
"""What only a client of HTTP sends. A page can make a browser post lines to any port, and the lines of the body would
run as commands if the connection stayed open."""
RECENT_NAMES: Final = 64
"""How many names of commands are found without a hash of their bytes."""


class Requests:
    """Runs the requests of one node's clients."""

    def __init__(self, state: NodeState, limits: ClientLimits, stopwatch_ns: Callable[[], int]) -> None:
        self._state = state
        self._limits = limits
        self._pause = state.client_pause
        self._monitoring = state.monitoring
        self._stopwatch_ns = stopwatch_ns
        self.interrupted: list[Session] = []
        """Sessions whose requests took long in this turn; they continue in the next one."""
        self._recent_names: list[bytes] = [b""] * RECENT_NAMES
        self._recent_entries: list[CommandEntry | None] = [None] * RECENT_NAMES

    def count_input(self, session: Session) -> None:
        """Count the input of a client that cannot run yet, of which there is more or less than before."""
        parser = session.parser
        held: i64 = parser.held_bytes
        if session.input_bytes == 0:
            session.input_since_ms = self._state.now_ms
        self._state.lifecycle.memory.input_bytes += held - session.input_bytes
        session.input_bytes = held
        if held > BIG_BYTES or parser.argument_bytes > BIG_BYTES:
            self._bound_input(session)

    def _bound_input(self, session: Session) -> None:
        """A client sent much input that cannot run yet: ensure that there is memory for it and for its remaining part.

        A job that does not fit is refused before the rest of it is stored.
        """
        state, parser = self._state, session.parser
        memory = state.lifecycle.memory
        if parser.buffered_bytes > MAX_QUERY_BYTES:
            state.ready.hang_up(session)
        elif session.may_run() and parser.argument_bytes > BIG_BYTES:
            if not make_room_for(state, parser.coming_bytes + COPIES_UNDER_WAY * parser.argument_bytes):
                parser.pass_over()
                memory.input_bytes += parser.held_bytes - session.input_bytes
                session.input_bytes = parser.held_bytes
                state.counters.add(REQUESTS_REFUSED_UNREAD)
        else:
            self._limits.bound_waiting_input(session)

    def _refuse_passed_over(self, session: Session) -> None:
        """Reply with an error to a request that was not stored, because there is no memory for it."""
        session.parser.passed_over = False
        error = OutOfMemory(TOO_BIG)
        self._state.errors.add(error.code)
        if session.reply_mode == REPLY_ON:
            session.out.append(error.encode())
        elif session.reply_mode == REPLY_SKIP:
            session.reply_mode = REPLY_ON

    def run(self, session: Session, began_ns: i64) -> None:
        """Run requests until the input ends, the client blocks, or the connection must be closed."""
        state, parser, out = self._state, session.parser, session.out
        pause, monitoring = self._pause, self._monitoring
        ready = state.lifecycle.ready
        noted = len(state.ready.changes)
        logged = state.ready.logged
        slow = state.ready.slow
        check_at: i64 = 0 if slow and session.number in slow else PARTS_PER_CHECK
        if state.unauthenticated and session.number in state.unauthenticated:
            check_at = 0
        session.recount()
        ran = False
        until_ns: i64 = began_ns + TURN_NS
        try:
            while session.may_run() and not session.closing and not session.closed:
                if len(out) >= check_at:
                    if state.unauthenticated and self._limits.has_replied_enough(session):
                        break
                    if self._limits.must_read(session):
                        break
                    check_at = len(out) + PARTS_PER_CHECK
                args = parser.next()
                if args is None:
                    break
                entry = self._entry(args[0])
                if pause.until_ms > state.now_ms and entry is not None and not entry.allowed_paused:
                    parser.put_back(args)
                    pause.hold(session)
                    break
                if session.blocked is not None:
                    if not self._run_behind(entry, session, args):
                        break
                elif parser.passed_over:
                    self._refuse_passed_over(session)
                    continue
                elif session.reply_mode != REPLY_ON:
                    self._run_muted(entry, session, args)
                else:
                    self._dispatch(entry, session, args)
                ran = True
                ended_ns: i64 = self._stopwatch_ns()
                if entry is not None:
                    spent_ns: i64 = ended_ns - began_ns
                    if state.long_commands and self._has_long_command(session, entry, args, spent_ns):
                        break
                    entry.latency.observe(spent_ns)
                    if spent_ns >= monitoring.slow_ns:
                        monitoring.note_slow(entry, args, spent_ns)
                began_ns = ended_ns
                if ready:
                    state.events.queues_ready()
                if ended_ns >= until_ns and parser.buffered_bytes > 0:
                    session.interrupted = True
                    self.interrupted.append(session)
                    break
        except ProtocolError as error:
            self._refuse_input(session, error)
        if ran:
            session.input_since_ms = state.now_ms
        if session.closing:
            parser.discard()
        if out or session.closing:
            if len(state.ready.changes) != noted or state.ready.logged != logged:
                state.ready.tell_changed(session)
            state.ready.flush(session)

    def _refuse_input(self, session: Session, error: ProtocolError) -> None:
        """The input is no request: reply with the error after all other replies, then close the connection."""
        self._state.errors.add("ERR")
        if session.blocked is not None:
            reply_behind(self._state, session, error.encode())
            close_behind(session)
        else:
            session.out.append(error.encode())
            session.closing = True

    def _has_long_command(self, session: Session, entry: CommandEntry, args: list[bytes], spent_ns: i64) -> bool:
        """Whether the request has more slices; if so, it is counted when it ends."""
        command = session.blocked
        if not isinstance(command, LongCommand):
            return False
        command.entry = entry
        command.words = args
        command.spent_ns = spent_ns
        return True

    def _entry(self, name: bytes) -> CommandEntry | None:
        """The command that a client names, None if there is none. Clients send few different words."""
        first: i64 = name[0] if name else 0
        slot: i64 = (first * 5 + len(name)) & (RECENT_NAMES - 1)
        if name == self._recent_names[slot]:
            return self._recent_entries[slot]
        commands = self._state.commands
        entry = commands.get(name)
        if entry is None:
            entry = commands.get(name.lower())
        if entry is not None:
            self._recent_names[slot] = name
            self._recent_entries[slot] = entry
        return entry

    def _run_behind(self, entry: CommandEntry | None, session: Session, args: list[bytes]) -> bool:
        """Run a request of a client that waits for replies, if it may follow; otherwise keep it until it has them."""
        state, parser, out = self._state, session.parser, session.out
        blocked = session.blocked
        assert blocked is not None
        if parser.passed_over or entry is None or not entry.may_follow(state, session, args):
            parser.put_back(args)
            blocked.open = False
            return False
        kept = len(out)
        if session.reply_mode != REPLY_ON:
            self._run_muted(entry, session, args)
        else:
            self._dispatch(entry, session, args)
        if len(out) > kept:
            reply = b"".join(out[kept:])
            del out[kept:]
            reply_behind(state, session, reply)
        if session.closing:
            session.closing = False
            close_behind(session)
        return True

    def _dispatch(self, entry: CommandEntry | None, session: Session, args: list[bytes]) -> None:
        """Check and run one request. If it is refused, reply with the error."""
        try:
            if entry is None:
                self._unknown(session, args[0])
                return
            if not entry.accepts(len(args)):
                raise WrongArity(entry.command.name)
            self._check(entry, session, args)
            state = self._state
            if self._monitoring.sessions:
                self._monitoring.show(session, entry, args)
            session.last_command = entry.name
            try:
                entry.handler(state, session, args)
                entry.done += 1
            finally:
                # Counted last: INFO does not see itself, and CONFIG RESETSTAT is the first command of the new count.
                entry.calls += 1
                state.throughput.commands.value += 1
        except ReplyError as error:
            self._state.errors.add(error.code)
            if entry is not None:
                entry.failed += 1
                if entry.audited:
                    note(self._state, entry, session, args, error.text)
            if isinstance(error, LoginRefused) and error.delay_ms > 0:
                refuse_later(self._state, session, error)
            else:
                session.out.append(error.encode())
        except Exception as bug:  # noqa: BLE001 - a bug in one command must not end the node
            self._state.errors.add("ERR")
            if entry is not None:
                entry.failed += 1
                if entry.audited:
                    note(self._state, entry, session, args, "internal error")
            self._report_bug(session, args, bug)

    def _report_bug(self, session: Session, args: list[bytes], error: Exception) -> None:
        """A command raised an unexpected exception: log it, reply with an error, and close the connection."""
        name = args[0].decode("utf-8", "replace")
        report_bug(self._state, f"{name} with {len(args) - 1} arguments failed", error)
        session.out.append(b"-ERR internal error, the server's log has the details\r\n")
        session.closing = True

    def _check(self, entry: CommandEntry, session: Session, args: list[bytes]) -> None:
        """Refuse a command that must not run now."""
        state = self._state
        if not session.unrestricted:
            authorize(state, entry, session, args)
        if state.lifecycle.memory.level() >= EVICTION and not make_room(state) and entry.wants_memory(state, args):
            raise OutOfMemory
        if state.write_refusal and entry.needs_log:
            raise ReplyError(state.write_refusal)
        if state.clock_refusal and entry.needs_clock:
            raise ReplyError(state.clock_refusal)
        if state.loading and not entry.allowed_loading:
            raise Loading
        if state.ending and not entry.allowed_ending:
            raise NodeEnding

    def _run_muted(self, entry: CommandEntry | None, session: Session, args: list[bytes]) -> None:
        """Run a request without its reply (CLIENT REPLY OFF or SKIP)."""
        kept = len(session.out)
        if session.reply_mode == REPLY_SKIP:
            session.reply_mode = REPLY_ON
            self._dispatch(entry, session, args)
            del session.out[kept:]
            blocked = session.blocked
            if blocked is not None:
                session.reply_mode = REPLY_SKIP
                blocked.open = False  # the next reply is not skipped
            return
        self._dispatch(entry, session, args)
        if session.reply_mode == REPLY_OFF:
            del session.out[kept:]

    def _unknown(self, session: Session, name: bytes) -> None:
        """Handle a name that is not in the table: QUIT, or an error, after which a browser is disconnected."""
        lower = name.lower()
        if lower == b"quit":
            session.reply_ok()
            session.closing = True
            return
        if lower in HTTP_NAMES:
            session.closing = True
            raise ReplyError("ERR this port does not speak HTTP")
        raise ReplyError(f"ERR unknown command '{shown(name)}'")

    def continue_interrupted(self) -> None:
        """Let the sessions whose requests took long continue."""
        sessions = self.interrupted
        self.interrupted = []
        for session in sessions:
            session.interrupted = False
        self._state.resumed.extend(sessions)

    def resume(self) -> None:
        """Run the input of clients that may continue, in the order in which their waits ended."""
        state = self._state
        while state.resumed:
            sessions = state.resumed
            state.resumed = []
            for session in sessions:
                if session.may_run() and not session.closed and session.parser.buffered_bytes > 0:
                    self.run(session, self._stopwatch_ns())
                    if session.parser.held_bytes != session.input_bytes:
                        self.count_input(session)
                if session.input_ended and session.end_input():
                    state.ready.flush(session)
