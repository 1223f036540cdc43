"""Runs the commands of a query, under the rules that the user of the console has on this node.

Only commands that read and take a short time are run. They are not counted as commands of clients. QSCAN and JSCAN end
after one slice, because no client waits for the others. SHOW sends only the beginning of a long string, such as a body:
an array of the beginning and the length of the string stands for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.clients.session import Session
from disqued.core.runtime.authorization import authorize
from disqued.core.runtime.outbox import send
from disqued.core.runtime.waiting import abandon
from disqued.errors import Loading, ProtocolError, ReplyError, WrongArity
from disqued.queries.room import LOGGED_IN
from disqued.resp.request import RequestParser
from disqued.resp.writer import CRLF, array_header, bulk_header, integer

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.access.user import User
    from disqued.core.cluster.peer import Peer
    from disqued.core.commands.entry import CommandEntry
    from disqued.core.runtime.state import NodeState

COMMANDS: Final = frozenset({"info", "jscan", "qscan", "qstat", "show"})
LOCAL_COMMANDS: Final = frozenset({"qscan"})
"""Those that list only what this member is responsible for, so that the answers of all members can be added up."""
CUT_COMMANDS: Final = frozenset({"show"})
"""Those whose long strings are cut."""
MOST_STRING_BYTES: Final = 2048
"""How much of a string they send."""
MOST_BYTES: Final = 512 << 10
"""The length of a reply above which it is refused, and of a result after which further requests are."""
TOO_LONG: Final = "ERR the command takes too long"
_NUMBER_BYTES: Final = 4


def handle_query(state: NodeState, sender: Peer, frame: Frame) -> None:
    """Run the commands of a member and send their replies. Anything that is not a query is ignored."""
    payload = frame.payload
    try:
        (user, login), *requests = parsed_query(payload)
    except ValueError:
        return
    session = Session(b"%b:%d" % (sender.ip, sender.port), state.now_ms)
    session.user = _user(state, user, logged_in=login == LOGGED_IN)
    entries = {entry.command.name: entry for entry in state.commands.values() if entry.command.name in COMMANDS}
    replies: list[bytes] = []
    size = 0
    for words in requests:
        reply = _reply(state, session, entries.get(words[0].decode("latin-1").lower()), words, full=size > MOST_BYTES)
        replies.append(reply)
        size += len(reply)
    send(state, sender, state.bus.other(kinds.RESULT, payload[:_NUMBER_BYTES] + b"".join(replies)))


def parsed_query(payload: bytes) -> list[list[bytes]]:
    """The words about the user of a query, then those of its commands. Raises ValueError."""
    parser = RequestParser()
    parser.feed(payload[_NUMBER_BYTES:])
    found = []
    try:
        while (words := parser.next()) is not None:
            found.append(words)
    except ProtocolError as error:
        raise ValueError from error
    if not found:
        raise ValueError
    return found


def _user(state: NodeState, name: bytes, *, logged_in: bool) -> User | None:
    """The user of that name, if the console could log in here as it did on its own node."""
    user = state.users.by_name.get(name)
    if user is None or not user.rules.enabled or not (logged_in or user.rules.any_password):
        return None
    return user


def _reply(state: NodeState, session: Session, entry: CommandEntry | None, words: list[bytes], *, full: bool) -> bytes:
    """Run one command and return its reply."""
    try:
        if entry is None:
            raise ReplyError("ERR this command cannot be run for another member")
        if full:
            raise ReplyError("ERR too many replies")
        if not entry.accepts(len(words)):
            raise WrongArity(entry.command.name)
        if state.loading and not entry.allowed_loading:
            raise Loading
        if entry.command.name in LOCAL_COMMANDS:
            words = [*words, b"LOCAL"]
        authorize(state, entry, session, words)
        entry.handler(state, session, words)
        if session.blocked is not None:
            abandon(state, session)
            raise ReplyError(TOO_LONG)
        if entry.command.name in CUT_COMMANDS:
            _cut_strings(session.out)
        if sum(map(len, session.out)) > MOST_BYTES:
            raise ReplyError("ERR the reply is too long")
        return b"".join(session.out)
    except ReplyError as error:
        return error.encode()
    finally:
        session.out.clear()


def _cut_strings(out: list[bytes]) -> None:
    """Put arrays of the beginning and the length in place of long strings. Each string is between header and CRLF."""
    for index in range(1, len(out) - 1):
        value = out[index]
        if len(value) > MOST_STRING_BYTES and out[index - 1] == bulk_header(len(value)):
            out[index - 1] = array_header(2) + bulk_header(MOST_STRING_BYTES)
            out[index] = value[:MOST_STRING_BYTES]
            out[index + 1] = CRLF + integer(len(value))
