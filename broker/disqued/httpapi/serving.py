"""Serves the API: runs the command of each request as a client of the node.

Jobs that were handed out for a request whose client is gone, or that the answer has no room for, are given back without
counting an attempt.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from disqued.console import guard
from disqued.console.access import log_in, user_of
from disqued.console.calling import Caller, Callers
from disqued.core.commands.entry import CommandEntry
from disqued.httpapi import page, requests, results
from disqued.httpapi.openapi import document
from disqued.httpapi.operation import Operation, Values
from disqued.httpapi.statuses import JSON, ApiError, as_json, error, error_reply
from disqued.httpapi.table import MAX_BODY_BYTES
from disqued.httproutes import OK, Answer, Exchange, Request, Route
from disqued.resp.replies import Failure, Reply, Truncated

if TYPE_CHECKING:
    from disqued.node import Node

MORE_CONNECTIONS: Final = 256
"""How many more connections the HTTP port has for the API."""
MOST_WAITING: Final = 192
"""How many requests may wait for jobs, or for their ends."""
MAX_REQUEST_BYTES: Final = 2 * MAX_BODY_BYTES
"""The content of a request: the body of a job grows in JSON."""
MAX_ANSWER_BYTES: Final = 4 << 20
"""The bodies of all jobs in one answer."""
READ_ONLY: Final = "read"
_METHODS: Final = ("GET", "HEAD", "POST", "DELETE", "PUT", "PATCH", "OPTIONS")
_FILES: Final = ("openapi.json", "docs", "docs.css")
_READS_ONLY: Final = "the HTTP API of this node is read-only (http-api read)"
_BUSY: Final = "too many requests are waiting; try again later, or use another node"
_TOO_LARGE: Final = (
    f"the body of the job has more than {MAX_BODY_BYTES} bytes, so it was given back; take it with GETJOB instead"
)


class Api:
    """The API of a node."""

    def __init__(self, callers: Callers, commands: Iterable[tuple[bytes, CommandEntry]], mode: str) -> None:
        """Serve with `mode` `read` or `full` (`http-api`)."""
        self._callers = callers
        self._names = {entry.name: name for name, entry in commands}
        """The names of the commands on this node, which can be renamed."""
        self._mode = mode
        self._waiting = 0
        """How many requests wait."""
        self._document = json.dumps(document(), indent=1)
        self._page = page.html()

    @property
    def routes(self) -> tuple[Route, ...]:
        """The route of the API, below which it finds its operations itself."""
        return (
            Route(
                "/v1",
                self._serve,
                MORE_CONNECTIONS,
                _METHODS,
                MAX_REQUEST_BYTES,
                below="docs",
                admits=self._admits,
            ),
        )

    def _admits(self, node: Node, request: Request) -> Answer | None:
        """Refuse a large request of somebody who may not send it, before it is read."""
        found = user_of(node.state, request.headers, request.client)
        return as_json(found) if isinstance(found, Answer) else None

    def _serve(self, node: Node, exchange: Exchange) -> None:
        """Answer a request, now or later."""
        request = exchange.request
        if request.below in _FILES and request.method in {"GET", "HEAD"}:
            exchange.send(self._file(request.below))
            return
        try:
            operation = requests.find(request.method, request.below)
            if operation.changes and self._mode == READ_ONLY:
                raise ApiError("FORBIDDEN", _READS_ONLY)
            why = guard.cross_origin_error(request.headers, password=not node.state.users.open_to_all)
            if why:
                raise ApiError("FORBIDDEN", why.replace("the console", "the HTTP API"))
            values = requests.values_of(operation, request.below, request.query, request.body)
            waits = operation.waits and values["timeout_ms"] > 0
            if waits and self._waiting >= MOST_WAITING:
                raise ApiError("UNAVAILABLE", _BUSY)
        except ApiError as refused:
            exchange.send(error(refused.code, refused.message))
            return
        caller = self._caller(node, exchange)
        if caller is None:
            return
        words = operation.request_words(values)
        words[0] = self._names.get(words[0].lower(), words[0])
        if waits:
            self._waiting += 1
            exchange.at_end(self._waited)
        if operation.delivers:
            Delivery(node, exchange, caller, values, self._names.get(b"nack", b"NACK")).take(words)
        else:
            exchange.at_end(caller.close)
            caller.ask([words], lambda replies: exchange.run(partial(_answer, exchange, operation, values, replies[0])))

    def _file(self, name: str) -> Answer:
        """A document about the API. It contains no data of the node, so it needs no password."""
        if name == "openapi.json":
            return Answer(OK, self._document, content_type=JSON)
        if name == "docs.css":
            return Answer(OK, page.CSS, guard.HEADERS, "text/css; charset=utf-8")
        return Answer(OK, self._page, guard.HEADERS, "text/html; charset=utf-8")

    def _waited(self) -> None:
        self._waiting -= 1

    def _caller(self, node: Node, exchange: Exchange) -> Caller | None:
        """A client of the node for a request, logged in; None if the request was refused."""
        request = exchange.request
        caller = self._callers(request.client, MAX_BODY_BYTES, lambda why: _closed(exchange, why))
        refused = log_in(node, caller, request)
        if refused is None:
            return caller
        caller.close()
        exchange.send(as_json(refused))
        return None


def _closed(exchange: Exchange, why: str) -> None:
    """The node closed the connection of a caller."""
    code, _, _ = why.partition(" ")
    exchange.send(error_reply(why) if code.isupper() else error("UNAVAILABLE", why))


def _answer(exchange: Exchange, operation: Operation, values: Values, reply: Reply) -> None:
    """Answer with the reply of a command."""
    if isinstance(reply, Failure):
        exchange.send(error_reply(reply.message))
        return
    try:
        content = operation.result.read(reply, values)
    except ApiError as refused:
        exchange.send(error(refused.code, refused.message))
        return
    exchange.send(Answer(operation.result.status, json.dumps(content), content_type=JSON))


class Delivery:
    """A request for jobs. From the moment when the node hands out jobs, somebody has them or they are given back."""

    def __init__(self, node: Node, exchange: Exchange, caller: Caller, values: Values, nack: bytes) -> None:
        self._node = node
        self._exchange = exchange
        self._caller = caller
        self._values = values
        self._nack = nack
        self._under_way = True
        """Whether the node may have handed out jobs that nobody has."""

    def take(self, words: list[bytes]) -> None:
        """Send the request to the node."""
        self._exchange.at_end(self._ended)
        self._caller.ask([words], self._received)

    def _ended(self) -> None:
        """The request was answered, or the client is gone: no job may be handed out any more."""
        if self._caller.waits or not self._under_way:
            self._caller.abandon()  # otherwise jobs are on their way, and they are given back

    def _received(self, replies: list[Reply]) -> None:
        self._under_way = False
        reply = replies[0]
        if self._exchange.client is None:
            self._give_back(reply if isinstance(reply, list) else [])
        elif isinstance(reply, Failure):
            self._exchange.send(error_reply(reply.message))
        else:
            self._exchange.run(lambda: self._answer(reply if isinstance(reply, list) else []))

    def _answer(self, rows: list[Reply]) -> None:
        """Answer with the jobs that there is room for, and give the others back."""
        fitting = _fitting(rows)
        left = [row for row in rows if not any(row is one for one in fitting)]
        if rows and not fitting:
            answer = error("TOOLARGE", _TOO_LARGE)
        else:
            node_id = self._node.state.view.node_id.decode()
            jobs = [results.delivered(row, self._values) for row in fitting]
            answer = Answer(OK, json.dumps({"jobs": jobs, "node": node_id}), content_type=JSON)
        if left:
            self._give_back(left)
        self._exchange.send(answer)

    def _give_back(self, rows: list[Reply]) -> None:
        """Give jobs back without counting an attempt, then close the caller."""
        ids = [row[1] for row in rows if isinstance(row, list) and isinstance(row[1], bytes)]
        if ids:
            self._under_way = True
            self._caller.ask([[self._nack, *ids, b"UNCOUNTED"]], self._gave_back)
        else:
            self._caller.close()

    def _gave_back(self, _replies: list[Reply]) -> None:
        self._caller.close()


def _fitting(rows: list[Reply]) -> list[Reply]:
    """The first jobs that have room in one answer, without those whose bodies were too long to be read."""
    found: list[Reply] = []
    size = 0
    for row in rows:
        body: Any = row[2] if isinstance(row, list) else b""
        size += len(body)
        if size > MAX_ANSWER_BYTES:
            break
        if not isinstance(body, Truncated):
            found.append(row)
    return found
