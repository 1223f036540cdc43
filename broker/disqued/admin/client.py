"""CLIENT: lists, names, pauses and closes connections.

In addition to the subcommands of Disque there are those that Redis clients send when they connect: ID, INFO, SETINFO,
NO-EVICT, NO-TOUCH, UNPAUSE. Others are refused with Disque's error, which these clients accept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.clients.label import require_client_name, require_label
from disqued.core.clients.session import REPLY_OFF, REPLY_ON, REPLY_SKIP
from disqued.core.commands.command import Command
from disqued.core.commands.longcommand import LongWork
from disqued.core.commands.subcommand import ANY, Subcommand, choose
from disqued.core.runtime.audit import always
from disqued.core.runtime.slices import run_long
from disqued.errors import CommandSyntaxError, ReplyError, shown
from disqued.resp.integers import require_integer, require_timeout_ms

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState

_STEP_SESSIONS: Final = 20
_FOREVER_MS: Final = 1 << 62
_REPLY_MODES: Final = {b"ON": REPLY_ON, b"OFF": REPLY_OFF, b"SKIP": REPLY_SKIP}
_YES_NO: Final = {b"YES": True, b"NO": False}
_ONLY_TYPE: Final = b"NORMAL"
"""All clients are of one type."""


def client(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Run the subcommand."""
    handler = choose(_SUBCOMMANDS, args)
    if handler is None:
        raise ReplyError("ERR Syntax error, try CLIENT (LIST | KILL ip:port | GETNAME | SETNAME connection-name)")
    handler(state, session, args)


def _flags(session: Session) -> bytes:
    """The flags of a connection, one letter each; `N` for none."""
    letters = (
        (b"O", session.monitor),
        (b"b", session.blocked is not None),
        (b"c", session.closing),
        (b"A", session.closed),
        (b"U", session.unix_socket),
    )
    return b"".join(letter for letter, is_set in letters if is_set) or b"N"


def _describe(state: NodeState, session: Session) -> bytes:
    """One connection as `name=value` words: times in seconds, sizes in bytes.

    The original has no user, and splits output into a fixed buffer (obl) and a list (oll entries, omem bytes); here all
    of it is a list.
    """
    return b" ".join(
        (
            b"id=%d" % session.number,
            b"addr=%b" % session.address,
            b"fd=%d" % session.descriptor,
            b"name=%b" % session.name,
            b"age=%d" % ((state.now_ms - session.created_ms) // 1000),
            b"idle=%d" % ((state.now_ms - session.active_ms) // 1000),
            b"flags=%b" % _flags(session),
            b"qbuf=%d" % session.parser.buffered_bytes,
            b"qbuf-free=0",
            b"obl=0",
            b"oll=%d" % len(session.out),
            b"omem=%d" % session.output_bytes(),
            b"events=%b" % (b"rw" if session.out else b"r"),
            b"cmd=%b" % session.last_command,
            b"user=%b" % (b"" if session.user is None else session.user.name),
        )
    )


def _list(state: NodeState, session: Session, _args: list[bytes]) -> None:
    """Reply with a line for each connection, in the order in which they were opened."""
    run_long(state, session, _List(list(state.sessions)))


class _List(LongWork):
    """A CLIENT LIST, which describes some connections per step."""

    def __init__(self, numbers: list[int]) -> None:
        super().__init__()
        self._numbers = numbers
        self._described = 0
        self._lines: list[bytes] = []

    def step(self, state: NodeState, session: Session) -> bool:
        """Describe some more connections; after the last one, reply."""
        part = self._numbers[self._described : self._described + _STEP_SESSIONS]
        self._described += len(part)
        sessions = [state.sessions[number] for number in part if number in state.sessions]
        self._lines += [_describe(state, other) + b"\n" for other in sessions]
        if self._described < len(self._numbers):
            return True
        session.reply_bulk(b"".join(self._lines))
        return False


def _info(state: NodeState, session: Session, _args: list[bytes]) -> None:
    """Reply with the line of this connection, the client's library and the protocol version."""
    session.reply_bulk(
        b"%b lib-name=%b lib-ver=%b resp=%d\n"
        % (_describe(state, session), session.library, session.library_version, session.protocol)
    )


def _id(_state: NodeState, session: Session, _args: list[bytes]) -> None:
    session.reply_integer(session.number)


def _getname(_state: NodeState, session: Session, _args: list[bytes]) -> None:
    """Reply with the name, or null."""
    if session.name:
        session.reply_bulk(session.name)
    else:
        session.reply_null()


def _setname(_state: NodeState, session: Session, args: list[bytes]) -> None:
    """Name the connection; the empty name removes its name."""
    session.name = require_client_name(args[2])
    session.reply_ok()


def _setinfo(_state: NodeState, session: Session, args: list[bytes]) -> None:
    """Record the name or version of the client's library."""
    attribute = args[2].upper()
    text = require_label(args[3], "The name and version of a library")
    if attribute == b"LIB-NAME":
        session.library = text
    elif attribute == b"LIB-VER":
        session.library_version = text
    else:
        raise ReplyError("ERR CLIENT SETINFO knows LIB-NAME and LIB-VER only")
    session.reply_ok()


def _accept_switch(_state: NodeState, session: Session, args: list[bytes]) -> None:
    """NO-EVICT and NO-TOUCH: accepted without effect, since there is no eviction of clients and there are no keys."""
    if args[2].upper() not in {b"ON", b"OFF"}:
        raise CommandSyntaxError
    session.reply_ok()


def _pause(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Pause the commands of all clients for some milliseconds; a pause can be made longer but not shorter."""
    until_ms = min(state.now_ms + require_timeout_ms(args[2]), _FOREVER_MS)
    state.client_pause.extend(until_ms)
    session.reply_ok()


def _unpause(state: NodeState, session: Session, _args: list[bytes]) -> None:
    """End the pause of all clients."""
    state.resumed.extend(state.client_pause.end())
    session.reply_ok()


def _reply(_state: NodeState, session: Session, args: list[bytes]) -> None:
    """Set the reply mode: ON, OFF, or SKIP, which omits the reply of the next command."""
    mode = _REPLY_MODES.get(args[2].upper())
    if mode is None:
        raise CommandSyntaxError
    if mode == REPLY_ON:
        session.reply_ok()
    if mode != REPLY_SKIP or session.reply_mode != REPLY_OFF:
        session.reply_mode = mode


def _kill(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Close connections. `KILL address` replies OK or an error, `KILL option value ...` the number of connections."""
    if len(args) == 2:
        raise CommandSyntaxError
    if len(args) > 3:
        session.reply_integer(_close(state, session, _Filter(args[2:])))
    elif _close(state, session, _Filter([b"ADDR", args[2], b"SKIPME", b"NO"])):
        session.reply_ok()
    else:
        raise ReplyError("ERR No such client")


class _Filter:
    """Selects the connections that match all given options."""

    def __init__(self, words: list[bytes]) -> None:
        self.number: int | None = None
        self.address: bytes | None = None
        self.user: bytes | None = None
        self.skip_caller = True
        if len(words) % 2:
            raise CommandSyntaxError
        for option, value in zip(words[::2], words[1::2], strict=True):
            self._take(option.upper(), value)

    def _take(self, option: bytes, value: bytes) -> None:
        if option == b"ID":
            self.number = require_integer(value)
        elif option == b"ADDR":
            self.address = value
        elif option == b"USER":
            self.user = value
        elif option == b"TYPE":
            if value.upper() != _ONLY_TYPE:
                raise ReplyError(f"ERR Unknown client type '{shown(value)}'")
        elif option == b"SKIPME" and value.upper() in _YES_NO:
            self.skip_caller = _YES_NO[value.upper()]
        else:
            raise CommandSyntaxError

    def fits(self, session: Session) -> bool:
        """Whether a connection is open and matches."""
        return (
            (self.number is None or session.number == self.number)
            and (self.address is None or session.address == self.address)
            and (self.user is None or (session.user is not None and session.user.name == self.user))
            and not session.closed
        )


def _close(state: NodeState, caller: Session, wanted: _Filter) -> int:
    """Close connections and return how many; the caller's stays open until it has its reply."""
    closed = 0
    for session in state.sessions.values():
        if not wanted.fits(session) or (session is caller and wanted.skip_caller):
            continue
        closed += 1
        if session is caller:
            session.closing = True
        else:
            state.ready.hang_up(session)
    return closed


_SUBCOMMANDS: Final = {
    b"LIST": Subcommand(_list, categories=("inspect", "admin")),
    b"KILL": Subcommand(_kill, 2, ANY, audited=always),
    b"GETNAME": Subcommand(_getname, categories=("connection",)),
    b"SETNAME": Subcommand(_setname, 3, 3, categories=("connection",)),
    b"PAUSE": Subcommand(_pause, 3, 3, audited=always),
    b"REPLY": Subcommand(_reply, 3, 3, categories=("connection",)),
    b"ID": Subcommand(_id, categories=("connection",)),
    b"INFO": Subcommand(_info, categories=("connection",)),
    b"SETINFO": Subcommand(_setinfo, 4, 4, categories=("connection",)),
    b"NO-EVICT": Subcommand(_accept_switch, 3, 3, categories=("connection",)),
    b"NO-TOUCH": Subcommand(_accept_switch, 3, 3, categories=("connection",)),
    b"UNPAUSE": Subcommand(_unpause, audited=always),
}

COMMAND: Final[Command] = Command(
    "client",
    -2,
    ("readonly", "admin"),
    client,
    "connection",
    "Lists, names, pauses or closes connections.",
    "LIST | INFO | ID | KILL address | KILL [ID id] [TYPE normal] [ADDR address] [USER user] [SKIPME yes|no] | "
    "GETNAME | SETNAME name | SETINFO LIB-NAME|LIB-VER text | PAUSE ms | UNPAUSE | REPLY ON|OFF|SKIP | "
    "NO-EVICT ON|OFF | NO-TOUCH ON|OFF",
    "O(clients)",
    allowed_paused=True,
    categories=("admin", "dangerous"),
    subcommands=_SUBCOMMANDS,
)
