"""The page `/metrics`: rendered and sent in parts, with clients served in between.

`?queues=all`, `?queues=none` and `?queues=20` set how many of the longest queues have their own series, instead of the
directive `metrics-queues`; `?queue=mail.*` selects queues by name. `?name=mail` adds the series of a queue that may be
short, or not exist. `/metrics/queues/mail` has only the series of that queue, for scalers, some of which drop the query
of a URL.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes

from disqued.console.access import metrics_refusal
from disqued.httproutes import BAD_REQUEST, MAX_NAME_BYTES, OK, Answer, Exchange, Route
from disqued.metrics.exposition import Encoder, page, page_of_queue
from disqued.metrics.queues import TOO_LONG, Selection, parse

if TYPE_CHECKING:
    from disqued.metrics.server import ServerFigures
    from disqued.node import Node

MOST_AT_A_TIME: Final = 4
"""How many pages are rendered at a time; one that is not read stays until its connection is closed."""
TURN_NS: Final = 4_000_000
"""How long rendering may take before other clients get a turn; one part may exceed it."""
PUSH_BYTES: Final = 64 << 10
"""How much is sent at once."""
UNREAD_S: Final = 0.02
"""How often it is checked whether the client has read everything."""


def routes(figures: ServerFigures) -> tuple[Route, ...]:
    """The routes of the pages."""
    return (
        Route("/metrics", partial(_answer, figures), MOST_AT_A_TIME),
        Route("/metrics/queues", _answer_queue, below="NAME"),
    )


def _answer_queue(node: Node, exchange: Exchange) -> None:
    """Answer with the series of one queue."""
    name = unquote_to_bytes(exchange.request.below)
    refused = metrics_refusal(node.state, exchange.request.headers, exchange.request.client, b"QSTAT", name)
    if refused is not None:
        exchange.send(refused)
    elif not name:
        exchange.answer(BAD_REQUEST, "use /metrics/queues/NAME")
    elif len(name) > MAX_NAME_BYTES:
        exchange.answer(BAD_REQUEST, TOO_LONG)
    else:
        encoder = Encoder(exchange.request.headers.get("accept", ""))
        exchange.send(Answer(OK, page_of_queue(node, name, encoder), content_type=encoder.content_type))


def _answer(figures: ServerFigures, node: Node, exchange: Exchange) -> None:
    refused = metrics_refusal(node.state, exchange.request.headers, exchange.request.client, b"INFO")
    if refused is not None:
        exchange.send(refused)
        return
    selection = parse(exchange.query, node.state.config.metrics_queues)
    if isinstance(selection, str):
        exchange.answer(BAD_REQUEST, selection)
        return
    encoder = Encoder(exchange.request.headers.get("accept", ""))
    if exchange.request.method == "HEAD":
        exchange.send(Answer(OK, b"", content_type=encoder.content_type))
        return
    _Making(figures, node, exchange, selection, encoder).resume()


class _Making:
    """One page that is being rendered."""

    def __init__(
        self, figures: ServerFigures, node: Node, exchange: Exchange, selection: Selection, encoder: Encoder
    ) -> None:
        self._figures = figures
        self._exchange = exchange
        self._encoder = encoder
        self._parts = page(node, figures, selection, encoder)
        self._stopwatch_ns = node.state.host.stopwatch_ns
        self._spent_ns = 0
        self._begun = False

    def resume(self) -> None:
        """Render and send the next part, and schedule the rest."""
        exchange = self._exchange
        if self._begun and not exchange.reads:
            exchange.call_later(UNREAD_S, self.resume)
            return
        began_ns = self._stopwatch_ns()
        until_ns = began_ns + TURN_NS
        made: list[bytes] = []
        size = 0
        is_over = False
        while size < PUSH_BYTES and self._stopwatch_ns() < until_ns:
            part = next(self._parts, None)
            if part is None:
                is_over = True
                break
            made.append(part)
            size += len(part)
        self._send(b"".join(made))
        self._spent_ns += self._stopwatch_ns() - began_ns
        if is_over:
            self._figures.scrape_ns = self._spent_ns
            exchange.finish()
        else:
            exchange.call_later(0.0, self.resume)

    def _send(self, data: bytes) -> None:
        if not data:
            return
        if self._begun:
            self._exchange.push(data)
        else:
            self._begun = True
            self._exchange.stream(Answer(OK, data, content_type=self._encoder.content_type))
