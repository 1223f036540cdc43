"""The console on the HTTP port: `/` is the page, `/console/` has its files and what it asks for.

| page | what it is |
|---|---|
| `/console/events` | live figures (`console.live`); `match`, `sort`, `most` choose, a `queue` is shown in any case |
| `/console/jobs` | jobs of a `queue` in a `state`; `cursor` goes on with a scan |
| `/console/act` | has something done (`console.actions`), by POST |
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from disqued.console import actions, assets, guard
from disqued.console.calling import Ask, Callers, Requests, Then
from disqued.console.choice import MOST_CHOSEN, SORTS, Choice
from disqued.console.jobs import MOST_BODY_BYTES, PEEKS, STATES, Search
from disqued.console.live import Live
from disqued.console.text import fields_of
from disqued.core.commands.entry import CommandEntry
from disqued.core.runtime.authentication import ONLY_USER
from disqued.errors import ReplyError
from disqued.httproutes import (
    BAD_REQUEST,
    FORBIDDEN,
    MAX_NAME_BYTES,
    MAX_PATTERN_BYTES,
    OK,
    UNAUTHORIZED,
    UNAVAILABLE,
    Answer,
    Exchange,
    Route,
)
from disqued.resp.replies import Failure, Reply

if TYPE_CHECKING:
    from disqued.node import Node

MOST_LIVE: Final = 8
MOST_ASKING: Final = 4
"""Pages that may be live, and requests that may be under way, at a time."""
MOST_TEXT_BYTES: Final = 256 << 10
"""Of a text of the node, such as the list of its cluster."""
JSON: Final = "application/json"
_DIGITS: Final = len(str(MOST_CHOSEN))
_KEPT_OUT: Final = "This needs the password of the node (requirepass)"


class Console:
    """The console of one node."""

    def __init__(self, callers: Callers, commands: Iterable[tuple[bytes, CommandEntry]]) -> None:
        self._callers = callers
        self._names = {entry.name: name for name, entry in commands}
        """What the commands are called on this node."""

    @property
    def routes(self) -> tuple[Route, ...]:
        """All its pages."""
        return (
            *assets.routes(),
            Route("/console/events", self._events, MOST_LIVE, ("GET",), listed=False),
            Route("/console/jobs", self._jobs, MOST_ASKING, listed=False),
            Route("/console/act", self._act, MOST_ASKING, ("POST",), actions.MOST_BYTES, listed=False),
        )

    def _events(self, node: Node, exchange: Exchange) -> None:
        """Live figures, until the client goes."""
        fields = _fields(exchange)
        if fields is None:
            return
        sort, most = fields.get("sort", b"length").decode("latin-1"), fields.get("most", b"50")
        sought, opened = fields.get("match", b""), fields.get("queue")
        if sort not in SORTS or not most.isdigit() or len(most) > _DIGITS or not 0 < int(most) <= MOST_CHOSEN:
            exchange.answer(BAD_REQUEST, f"sort is one of {', '.join(SORTS)}, most a number up to {MOST_CHOSEN}")
            return
        if len(sought) > MAX_PATTERN_BYTES:
            exchange.answer(BAD_REQUEST, f"A name or pattern to look for has {MAX_PATTERN_BYTES} bytes at most")
            return
        if opened is not None and len(opened) > MAX_NAME_BYTES:
            exchange.answer(BAD_REQUEST, f"Queues whose names have more than {MAX_NAME_BYTES} bytes are not shown")
            return
        ask = self._enter(node, exchange, MOST_TEXT_BYTES)
        if ask is not None:
            Live(node.state, exchange, ask, Choice(sought, sort, int(most)), opened).step()

    def _jobs(self, node: Node, exchange: Exchange) -> None:
        """Some jobs of a queue."""
        fields = _fields(exchange)
        if fields is None:
            return
        queue, state = fields.get("queue"), fields.get("state", b"oldest").decode("latin-1")
        if queue is None or state not in {*PEEKS, *STATES}:
            exchange.answer(BAD_REQUEST, f"Give a queue, and as state one of {', '.join((*PEEKS, *STATES))}")
            return
        ask = self._enter(node, exchange, MOST_BODY_BYTES)
        if ask is None:
            return
        search = Search(
            exchange,
            ask,
            lambda: int(node.state.now_ms),
            lambda jobs, cursor: _send_json(exchange, {"jobs": jobs, "cursor": cursor}),
        )
        if state in PEEKS:
            search.peek(queue, PEEKS[state])
        else:
            search.scan(queue, state.encode(), fields.get("cursor", b"0"))

    def _act(self, node: Node, exchange: Exchange) -> None:
        """Have something done."""
        why = guard.why_no_action(exchange.request.headers, enabled=node.state.config.http_actions)
        if why:
            exchange.answer(FORBIDDEN, why)
            return
        try:
            command = actions.command_of(exchange.request.body)
        except actions.NoActionError as error:
            exchange.answer(BAD_REQUEST, str(error))
            return
        ask = self._enter(node, exchange, MOST_BODY_BYTES)
        if ask is not None:
            ask([command], lambda replies: _tell(exchange, replies[0]))

    def _enter(self, node: Node, exchange: Exchange, most_bytes: int) -> Ask | None:
        """A way to ask the node for whoever may; None for others, who were told why."""
        request = exchange.request
        why = guard.why_foreign(request.headers, password=bool(node.state.password))
        if why:
            exchange.answer(FORBIDDEN, why)
            return None
        caller = self._callers(request.client, most_bytes, lambda why: exchange.answer(UNAVAILABLE, why))
        exchange.at_end(caller.close)
        if node.state.password:
            password, user = guard.credentials(request.headers) or (b"", b"")
            try:
                caller.authenticate(password, user or ONLY_USER)
            except ReplyError:
                exchange.send(Answer(UNAUTHORIZED, _KEPT_OUT, guard.ASK_FOR_PASSWORD))
                return None

        def ask(requests: Requests, then: Then) -> None:
            named = [[self._names.get(command, command), *words] for command, *words in requests]
            caller.ask(named, lambda replies: exchange.run(lambda: then(replies)))

        return ask


def _fields(exchange: Exchange) -> dict[str, bytes] | None:
    """Of the query; None when there are too many, which is told."""
    try:
        return fields_of(exchange.query)
    except ValueError:
        exchange.answer(BAD_REQUEST, "There is too much behind the question mark")
        return None


def _send_json(exchange: Exchange, said: dict[str, Any]) -> None:
    exchange.send(Answer(OK, json.dumps(said), content_type=JSON))


def _tell(exchange: Exchange, reply: Reply) -> None:
    """What came of an action."""
    if isinstance(reply, Failure):
        exchange.answer(BAD_REQUEST, reply.message)
    else:
        _send_json(exchange, {"reply": reply.decode() if isinstance(reply, bytes) else reply})
