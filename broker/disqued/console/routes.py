"""The routes of the console: `/` is the page, `/console/` has its files and its requests.

| route | description |
|---|---|
| `/console/events` | live updates (`console.live`); `match`, `sort`, `most` select queues, `queue` is always included |
| `/console/jobs` | jobs of a `queue` in a `state`; `cursor` continues a scan; with `state=dead` may have a `member` |
| `/console/job` | what this node knows about a `job`, and how it ended |
| `/console/graph` | the parents and children of a `job` |
| `/console/redrive` | how far the REDRIVE of a `queue` is |
| `/console/settings` | the settings that hold for a `queue`, and where they come from |
| `/console/ordered` | the ordered queues, with leaders, replicas and jobs |
| `/console/act` | executes an action (`console.actions`), with POST |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from disqued.console import actions, assets, guard, job
from disqued.console.access import log_in
from disqued.console.asking import MemberQuestions
from disqued.console.calling import Callers, Calls, Cancel, Requests, Then
from disqued.console.figures import redrive_status, settings_set
from disqued.console.graph import Graph
from disqued.console.jobs import (
    DEAD,
    DEAD_FOUND,
    FOUND,
    MAX_BODY_BYTES,
    PEEKS,
    SCANNED,
    SCANNED_OF_MEMBER,
    STATES,
    Search,
)
from disqued.console.live import Live
from disqued.console.ordered import OrderedQueues
from disqued.console.schedules import schedules_of
from disqued.console.selection import MAX_SELECTED, SORTS, QueueSelection
from disqued.console.text import fields_of
from disqued.core.cluster.entrykinds import MOST_SCHEDULE_BYTES as MAX_SCHEDULE_BYTES
from disqued.core.commands.entry import CommandEntry
from disqued.httproutes import (
    BAD_REQUEST,
    FORBIDDEN,
    MAX_NAME_BYTES,
    MAX_PATTERN_BYTES,
    OK,
    UNAVAILABLE,
    Answer,
    Exchange,
    Route,
)
from disqued.resp.replies import Failure, Reply

if TYPE_CHECKING:
    from disqued.node import Node

ID_BYTES: Final = 40
MAX_LIVE_PAGES: Final = 8
MAX_PENDING: Final = 4
"""Maximum number of live pages, and of pending requests."""
MAX_TEXT_BYTES: Final = 256 << 10
"""Maximum length of a text reply, such as CLUSTER NODES."""
JSON: Final = "application/json"
_DIGITS: Final = len(str(MAX_SELECTED))


class Console:
    """The console of a node."""

    def __init__(self, callers: Callers, commands: Iterable[tuple[bytes, CommandEntry]]) -> None:
        self._callers = callers
        self._names = {entry.name: name for name, entry in commands}
        """The names of the commands on this node, which can be renamed."""

    @property
    def routes(self) -> tuple[Route, ...]:
        """The routes of the console."""
        return (
            *assets.routes(),
            Route("/console/events", self._events, MAX_LIVE_PAGES, ("GET",), listed=False),
            Route("/console/jobs", self._jobs, MAX_PENDING, listed=False),
            Route("/console/job", self._job, MAX_PENDING, listed=False),
            Route("/console/graph", self._graph, MAX_PENDING, listed=False),
            Route("/console/redrive", self._redrive, MAX_PENDING, listed=False),
            Route("/console/settings", self._settings, MAX_PENDING, listed=False),
            Route("/console/schedules", self._schedules, MAX_PENDING, listed=False),
            Route("/console/ordered", self._ordered, MAX_PENDING, listed=False),
            Route("/console/act", self._act, MAX_PENDING, ("POST",), actions.MAX_BYTES, listed=False),
        )

    def _events(self, node: Node, exchange: Exchange) -> None:
        """Stream live updates until the client disconnects."""
        fields = _fields(exchange)
        if fields is None:
            return
        sort, most = fields.get("sort", b"length").decode("latin-1"), fields.get("most", b"50")
        search, opened = fields.get("match", b""), fields.get("queue")
        if sort not in SORTS or not most.isdigit() or len(most) > _DIGITS or not 0 < int(most) <= MAX_SELECTED:
            exchange.answer(
                BAD_REQUEST, f"invalid query; sort is one of: {', '.join(SORTS)}; most is 1 to {MAX_SELECTED}"
            )
            return
        if len(search) > MAX_PATTERN_BYTES:
            exchange.answer(BAD_REQUEST, f"match is longer than {MAX_PATTERN_BYTES} bytes")
            return
        if opened is not None and len(opened) > MAX_NAME_BYTES:
            exchange.answer(BAD_REQUEST, f"queue is longer than {MAX_NAME_BYTES} bytes")
            return
        calls = self._authorize(node, exchange, MAX_TEXT_BYTES)
        if calls is not None:
            Live(node.state, exchange, calls, partial(QueueSelection, search, sort, int(most)), opened).step()

    def _jobs(self, node: Node, exchange: Exchange) -> None:
        """Send some jobs of a queue."""
        fields = _fields(exchange)
        if fields is None:
            return
        queue, state = fields.get("queue"), fields.get("state", b"oldest").decode("latin-1")
        if (queue is None and state != DEAD) or state not in {*PEEKS, *STATES}:
            exchange.answer(BAD_REQUEST, f"invalid queue or state; state is one of: {', '.join((*PEEKS, *STATES))}")
            return
        member = fields.get("member", node.state.view.node_id)
        own = member == node.state.view.node_id
        if not own and (queue is not None or member not in node.state.view.peers):
            exchange.answer(BAD_REQUEST, "unknown member, or a queue with it")
            return
        calls = self._authorize(node, exchange, MAX_BODY_BYTES)
        if calls is None:
            return
        search = Search(
            exchange,
            calls.ask if own else MemberQuestions(exchange, calls, member).ask,
            lambda: int(node.state.now_ms),
            lambda jobs, cursor: _send_json(exchange, {"jobs": jobs, "cursor": cursor}),
            FOUND if queue is not None else DEAD_FOUND,
            SCANNED if own else SCANNED_OF_MEMBER,
        )
        if state in PEEKS and queue is not None:
            search.peek(queue, PEEKS[state])
        else:
            search.scan(queue, state.encode(), fields.get("cursor", b"0"))

    def _job(self, node: Node, exchange: Exchange) -> None:
        """Send what is known about a job, also one that has ended."""
        job_id = _job_id(exchange)
        if job_id is None:
            return

        def answered(replies: list[Reply]) -> None:
            why = job.refusal(replies)
            if why:
                exchange.answer(UNAVAILABLE, why)
            else:
                _send_json(exchange, job.described(replies, int(node.state.now_ms)))

        calls = self._authorize(node, exchange, MAX_BODY_BYTES)
        if calls is not None:
            calls.ask(job.questions(job_id), answered)

    def _graph(self, node: Node, exchange: Exchange) -> None:
        """Send the jobs that a job waits for, and those that wait for it."""
        job_id = _job_id(exchange)
        if job_id is None:
            return
        calls = self._authorize(node, exchange, MAX_NAME_BYTES)
        if calls is not None:
            Graph(exchange, calls.ask, lambda graph: _send_json(exchange, graph)).begin(job_id)

    def _settings(self, node: Node, exchange: Exchange) -> None:
        """Send the settings of a queue that are not defaults."""
        self._ask_about(node, exchange, b"qconf", b"GET", lambda reply: {"settings": settings_set(reply)})

    def _redrive(self, node: Node, exchange: Exchange) -> None:
        """Send how far the REDRIVE of a queue is."""
        self._ask_about(node, exchange, b"redrive", b"STATUS", lambda reply: {"redrive": redrive_status(reply)})

    def _schedules(self, node: Node, exchange: Exchange) -> None:
        """Send the schedules of the cluster."""

        def read(reply: Reply) -> dict[str, Any]:
            return {"schedules": schedules_of(reply), "now_ms": int(node.state.now_ms)}

        calls = self._authorize(node, exchange, MAX_SCHEDULE_BYTES)
        if calls is not None:
            calls.ask([[b"schedule", b"*", b"SHOW"]], lambda replies: _send_facts(exchange, replies[0], read))

    def _ordered(self, node: Node, exchange: Exchange) -> None:
        """Send the ordered queues of the cluster."""
        calls = self._authorize(node, exchange, MAX_TEXT_BYTES)
        if calls is not None:
            OrderedQueues(
                calls.ask,
                lambda content: _send_json(exchange, content),
                lambda why: exchange.answer(UNAVAILABLE, why),
            ).begin()

    def _ask_about(
        self, node: Node, exchange: Exchange, command: bytes, what: bytes, read: Callable[[Reply], dict[str, Any]]
    ) -> None:
        """Send what a command replies about a queue."""
        fields = _fields(exchange)
        if fields is None:
            return
        queue = fields.get("queue")
        if queue is None or len(queue) > MAX_NAME_BYTES:
            exchange.answer(BAD_REQUEST, f"give a queue of at most {MAX_NAME_BYTES} bytes")
            return
        calls = self._authorize(node, exchange, MAX_NAME_BYTES)
        if calls is not None:
            calls.ask([[command, queue, what]], lambda replies: _send_facts(exchange, replies[0], read))

    def _act(self, node: Node, exchange: Exchange) -> None:
        """Execute an action."""
        why = guard.action_error(exchange.request.headers, enabled=node.state.config.http_actions)
        if why:
            exchange.answer(FORBIDDEN, why)
            return
        try:
            command = actions.command_of(exchange.request.body)
        except actions.InvalidActionError as error:
            exchange.answer(BAD_REQUEST, str(error))
            return
        calls = self._authorize(node, exchange, MAX_BODY_BYTES)
        if calls is not None:
            calls.ask([command], lambda replies: _send_result(exchange, replies[0]))

    def _authorize(self, node: Node, exchange: Exchange, most_bytes: int) -> Calls | None:
        """Check access and return how to run commands; None if the request was refused."""
        request = exchange.request
        why = guard.cross_origin_error(request.headers, password=not node.state.users.open_to_all)
        if why:
            exchange.answer(FORBIDDEN, why)
            return None
        caller = self._callers(request.client, most_bytes, lambda why: exchange.answer(UNAVAILABLE, why))
        exchange.at_end(caller.close)
        refused = log_in(node, caller, request)
        if refused is not None:
            exchange.send(refused)
            return None

        def ask(requests: Requests, then: Then) -> None:
            named = [[self._names.get(command, command), *words] for command, *words in requests]
            caller.ask(named, lambda replies: exchange.run(lambda: then(replies)))

        def ask_member(member: bytes, requests: Requests, then: Then) -> Cancel | None:
            return caller.ask_member(member, requests, lambda replies: exchange.run(lambda: then(replies)))

        return Calls(ask, ask_member)


def _fields(exchange: Exchange) -> dict[str, bytes] | None:
    """Parse the query; None if it has too many fields, and the request was refused."""
    try:
        return fields_of(exchange.query)
    except ValueError:
        exchange.answer(BAD_REQUEST, "too many query fields")
        return None


def _job_id(exchange: Exchange) -> bytes | None:
    """The ID of the job in the query; None if there is none, and the request was refused."""
    fields = _fields(exchange)
    if fields is None:
        return None
    job_id = fields.get("job")
    if job_id is None or len(job_id) != ID_BYTES or not job_id.isascii():
        exchange.answer(BAD_REQUEST, f"give the ID of a job, {ID_BYTES} characters")
        return None
    return job_id


def _send_json(exchange: Exchange, content: dict[str, Any]) -> None:
    exchange.send(Answer(OK, json.dumps(content), content_type=JSON))


def _send_facts(exchange: Exchange, reply: Reply, read: Callable[[Reply], dict[str, Any]]) -> None:
    if isinstance(reply, Failure):
        exchange.answer(UNAVAILABLE, reply.message)
    else:
        _send_json(exchange, read(reply))


def _send_result(exchange: Exchange, reply: Reply) -> None:
    """Send the result of an action."""
    if isinstance(reply, Failure):
        exchange.answer(BAD_REQUEST, reply.message)
    else:
        _send_json(exchange, {"reply": reply.decode() if isinstance(reply, bytes) else reply})
