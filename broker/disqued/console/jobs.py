"""Finds some jobs of a queue: queued jobs from either end with QPEEK, jobs in other states with JSCAN.

Dead letters are also found in all queues.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from disqued.console.calling import Ask
from disqued.console.figures import bytes_of, pairs, text_of
from disqued.console.text import is_text, key_of, shown
from disqued.httproutes import UNAVAILABLE, Exchange
from disqued.queries.answering import TOO_LONG
from disqued.resp.replies import Failure, Reply, Truncated

PEEKED: Final = 20
FOUND: Final = 20
"""A scan stops after this many jobs, or a few more,"""
SCANNED: Final = 100
"""with JSCAN calls of this COUNT (each examines ten times as many),"""
MAX_SEARCH_S: Final = 2.0
"""or after this time; the page can continue from the cursor."""
SCANNED_OF_MEMBER: Final = 40
"""The COUNT of a JSCAN on another member, which must end in one slice: otherwise half of it follows."""
SHOWN_AT_ONCE: Final = 50
"""The result of a query is bounded, see `disqued.queries.answering`."""
PAUSE_S: Final = 0.005
MAX_BODY_BYTES: Final = 2048
"""Maximum length of a displayed body."""

PEEKS: Final = {"oldest": PEEKED, "youngest": -PEEKED}
STATES: Final = ("active", "delayed", "leased", "wait-repl", "acked", "queued", "dead", "held")
DEAD: Final = "dead"
DEAD_FOUND: Final = 100
"""How many dead letters a scan of all queues returns."""

_TOO_LONG: Final = Failure(TOO_LONG.encode())
_NUMBERS: Final = (
    ("repl", "repl"),
    ("ttl", "ttl_s"),
    ("delay", "delay_s"),
    ("retry", "retry_s"),
    ("nacks", "nacks"),
    ("additional-deliveries", "additional_deliveries"),
    ("next-requeue-within", "next_requeue_ms"),
    ("attempts", "attempts_before"),
    ("dead-since", "dead_since_ms"),
)


def job_fields(show: Reply, now_ms: int) -> dict[str, Any] | None:
    """Convert the reply of SHOW; None if the job no longer exists."""
    if not isinstance(show, list):
        return None
    fields = pairs(show)
    body = _whole(fields.get("body"))
    data = bytes_of(body)
    ctime = fields.get("ctime")
    nodes = fields.get("nodes-delivered")
    return {
        "id": text_of(fields.get("id")),
        **_named("queue", fields.get("queue")),
        **_named("origin", fields.get("origin-queue")),
        **_named("reason", fields.get("reason")),
        "parents": _number_of(fields.get("after")),
        "waits_for": _number_of(fields.get("waits-for")),
        "children": _number_of(fields.get("children")),
        "origin_id": text_of(fields.get("origin-id")),
        "state": text_of(fields.get("state")),
        "age_ms": max(now_ms - ctime // 1_000_000, 0) if isinstance(ctime, int) else None,
        **{field: fields.get(name) for name, field in _NUMBERS},
        "nodes": [text_of(node) for node in nodes] if isinstance(nodes, list) else [],
        "body": shown(data, breaks=True),
        "body_bytes": body.size_bytes if isinstance(body, Truncated) else len(data),
        "is_text": is_text(data),
    }


def _number_of(ids: Reply) -> int:
    return len(ids) if isinstance(ids, list) else 0


def _named(field: str, reply: Reply) -> dict[str, str]:
    """A name or a text as its key and as it is shown, empty if the job has none. A truncated one has no key."""
    data = bytes_of(reply)
    return {field: "" if isinstance(reply, Truncated) else key_of(data), f"{field}_shown": shown(data)}


def _whole(body: Reply) -> Reply:
    """A body; one of which another member sent only the beginning is truncated."""
    match body:
        case [bytes(beginning), int(size)]:
            return Truncated(beginning, size)
    return body


Done = Callable[[list[dict[str, Any]], str], None]


class Search:
    """A search for jobs of a queue."""

    def __init__(
        self,
        exchange: Exchange,
        ask: Ask,
        now_ms: Callable[[], int],
        done: Done,
        found: int = FOUND,
        scanned: int = SCANNED,
    ) -> None:
        """`done` is called with the jobs and the cursor at which a scan can continue, "0" at the end."""
        self._exchange = exchange
        self._ask = ask
        self._now_ms = now_ms
        self._done = done
        self._found = found
        self._scanned_at_once = scanned
        self._jobs: list[dict[str, Any]] = []
        self._ids: list[bytes] = []
        self._cursor = b"0"
        self._until_s = exchange.now_s() + MAX_SEARCH_S

    def peek(self, queue: bytes, count: int) -> None:
        """Find queued jobs."""
        self._ask([[b"qpeek", queue, b"%d" % count]], self._peeked)

    def _peeked(self, replies: list[Reply]) -> None:
        (jobs,) = replies
        self._ids = [bytes_of(job[1]) for job in jobs if isinstance(job, list)] if isinstance(jobs, list) else []
        self._show(jobs)

    def scan(self, queue: bytes | None, state: bytes, cursor: bytes) -> None:
        """Find jobs in a state, of a queue or of all, starting at a cursor."""
        of_queue = [] if queue is None else [b"QUEUE", queue]
        self._cursor = cursor
        request = [b"jscan", cursor, b"COUNT", b"%d" % self._scanned_at_once, *of_queue, b"STATE", state]
        self._ask([request], lambda replies: self._scanned(replies, queue, state))

    def _scanned(self, replies: list[Reply], queue: bytes | None, state: bytes) -> None:
        (found,) = replies
        if found == _TOO_LONG and self._exchange.now_s() < self._until_s:
            self._scanned_at_once = max(self._scanned_at_once // 2, 1)
            self._exchange.call_later(PAUSE_S, lambda: self.scan(queue, state, self._cursor))
            return
        if not isinstance(found, list) or not isinstance(found[1], list):
            self._show(found)
            return
        self._cursor = bytes_of(found[0])
        self._ids += map(bytes_of, found[1])
        if self._cursor == b"0" or len(self._ids) >= self._found or self._exchange.now_s() >= self._until_s:
            self._show(None)
        else:
            self._exchange.call_later(PAUSE_S, lambda: self.scan(queue, state, self._cursor))

    def _show(self, reply: Reply) -> None:
        """Request the details of the jobs, unless the node refused the search."""
        if isinstance(reply, Failure):
            self._exchange.answer(UNAVAILABLE, reply.message)
        elif self._ids:
            shown, self._ids = self._ids[:SHOWN_AT_ONCE], self._ids[SHOWN_AT_ONCE:]
            self._ask([[b"show", job_id] for job_id in shown], self._shown)
        else:
            self._done(self._jobs, self._cursor.decode())

    def _shown(self, replies: list[Reply]) -> None:
        now_ms = self._now_ms()
        self._jobs += [job for job in (job_fields(reply, now_ms) for reply in replies) if job is not None]
        self._show(None)
