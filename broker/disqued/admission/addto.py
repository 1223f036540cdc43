"""ADDTO: adds the same body to several queues, and replies with an array, in which each job has its ID or its error.

The jobs are independent of each other: each is what ADDJOB would have made. Nothing is undone if some of them are
refused. While jobs wait for their copies, the parts of the reply wait in the pipeline of the client, in their order
(`clients.pipeline`): first the header of the array, then the reply to each ADDJOB.
"""

from __future__ import annotations

from typing import Any, Final

from mypy_extensions import i64

from disqued.admission.addjob import add, has_dependent, may_fill
from disqued.admission.options import (
    MOST_WORDS,
    AddJob,
    complete_for,
    complete_options,
    copy_of,
    parse_options,
    settings_of,
)
from disqued.core.clients.session import Session
from disqued.core.commands.command import Command
from disqued.core.runtime.state import NodeState
from disqued.core.runtime.waiting import reply_behind
from disqued.errors import CommandSyntaxError, ReplyError
from disqued.resp import writer
from disqued.resp.integers import parse_integer, require_timeout_ms

MOST_QUEUES: Final = 100
"""How many queues one request may name: their jobs are added in one turn of the event loop."""
_FIRST_QUEUE: Final = 2


def _behind(args: list[bytes]) -> int:
    """The index of the word behind the queues, the body. Raises ReplyError if the number of queues is wrong."""
    count = parse_integer(args[1])
    if count is None or not 1 <= count <= MOST_QUEUES:
        raise ReplyError(f"ERR ADDTO takes 1 to {MOST_QUEUES} queues, their number comes first")
    behind = _FIRST_QUEUE + count
    if behind + 1 >= len(args):
        raise CommandSyntaxError
    return behind


def _queues(_state: Any, args: list[bytes]) -> list[bytes]:
    """The queues of a request; none if it will be refused."""
    try:
        return args[_FIRST_QUEUE : _behind(args)]
    except ReplyError:
        return []


def _may_follow(state: NodeState, session: Session, args: list[bytes]) -> bool:
    """Whether the request does the same now as after the replies to earlier ones of its client."""
    for name in _queues(state, args):
        if may_fill(state, session, name):
            return False
    return not has_dependent(args, 1)


def addto(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Add a job to each queue."""
    behind = _behind(args)
    names = args[_FIRST_QUEUE:behind]
    timeout_ms: i64 = require_timeout_ms(args[behind + 1])
    options = parse_options(args, behind + 2)
    if options.given_id is not None:
        raise ReplyError("ERR ADDTO makes several jobs, so it takes no ID; use ADDJOB for each queue")
    plain = True
    for name in names:
        if settings_of(state, name) is not None:
            plain = False
    if plain:
        complete_options(options, state.view.size)
    if len(set(names)) < len(names):
        raise ReplyError("ERR ADDTO takes each queue once")
    _reply(state, session, writer.array_header(len(names)))
    for name in names:
        _add(state, session, name, args[behind], timeout_ms, options, complete=plain)


def _add(
    state: NodeState,
    session: Session,
    name: bytes,
    body: bytes,
    timeout_ms: i64,
    options: AddJob,
    *,
    complete: bool,
) -> None:
    """Add one of the jobs. Its reply is behind those of the jobs before.

    If some queue has settings, the options are completed for each queue by itself.
    """
    out = session.out
    kept = len(out)
    waits = session.blocked is not None
    try:
        if not complete:
            options = copy_of(options)
            complete_for(options, settings_of(state, name), state.view.size)
        add(state, session, name, body, timeout_ms, options)
    except ReplyError as error:
        state.errors.add(error.code)
        out.append(error.encode())
    if waits and len(out) > kept:
        reply = b"".join(out[kept:])
        del out[kept:]
        reply_behind(state, session, reply)


def _reply(state: NodeState, session: Session, part: bytes) -> None:
    """Append a part of the reply, behind the replies that wait."""
    if session.blocked is None:
        session.out.append(part)
    else:
        reply_behind(state, session, part)


COMMAND: Final[Command] = Command(
    "addto",
    -5,
    ("write", "denyoom", "fast"),
    addto,
    "jobs",
    "Adds a job to each of several queues and replies with their IDs.",
    "n queue [queue ...] body ms-timeout [REPLICATE n] [DELAY sec] [RETRY sec] [TTL sec] [MAXLEN n] [KEY key]"
    " [WINDOW sec] [UNTIL window|done] [SYNC n] [ASYNC] [WITHCOPIES]",
    "O(queues) plus one message per copy",
    needs_log=True,
    needs_clock=True,
    may_follow=_may_follow,
    queues=_queues,
    categories=("producer",),
    most_words=MOST_QUEUES + MOST_WORDS,
)
