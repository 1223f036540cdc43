"""Live updates of one page as server-sent events: the whole state once a second, and scans for queues in between."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from disqued.console.calling import Ask
from disqued.console.figures import members, node_figures, queue_figures
from disqued.console.selection import QueueSelection
from disqued.core.runtime.state import NodeState
from disqued.httproutes import OK, UNAVAILABLE, Answer, Exchange
from disqued.resp.replies import Failure, Reply

FIRST_S: Final = 0.1
"""Delay of the first event, for a first scan."""
UPDATE_S: Final = 1.0
"""Interval of events."""
STEP_S: Final = 0.02
"""Interval of scan steps, and of checks whether the client reads again,"""
RESCAN_S: Final = 2.0
"""and pause after a complete scan."""
EVENT_STREAM: Final = "text/event-stream; charset=utf-8"
_LOCKED: Final = b"NOAUTH"
_NODE: Final = ((b"info",), (b"cluster", b"nodes"), (b"hello",))


class Live:
    """The live updates of one page."""

    def __init__(
        self, state: NodeState, exchange: Exchange, ask: Ask, selection: QueueSelection, opened: bytes | None
    ) -> None:
        """`opened` is a queue that is always included."""
        self._state = state
        self._exchange = exchange
        self._ask = ask
        self._selection = selection
        self._opened = opened
        self._update_s = exchange.now_s() + FIRST_S
        self._scan_s = 0.0
        self._began = False

    def step(self) -> None:
        """Do what is due, and schedule the next step."""
        exchange = self._exchange
        now_s = exchange.now_s()
        if self._began and not exchange.reads:
            exchange.call_later(STEP_S, self.step)
        elif now_s >= self._update_s:
            self._update_s = now_s + UPDATE_S
            self._update()
        elif names := self._selection.to_measure():
            self._ask(_qstats(names), lambda replies: self._measured(names, replies))
        elif self._selection.match_names():
            exchange.call_later(STEP_S, self.step)
        elif now_s >= self._scan_s:
            self._ask([[b"qscan", *self._selection.scan()]], self._scanned)
        else:
            exchange.call_later(min(self._update_s, self._scan_s) - now_s, self.step)

    def _scanned(self, replies: list[Reply]) -> None:
        self._selection.scanned(replies[0])
        if self._selection.round_ended or not isinstance(replies[0], list):
            self._scan_s = self._exchange.now_s() + RESCAN_S
        self._exchange.call_later(STEP_S, self.step)

    def _measured(self, names: Sequence[bytes], replies: list[Reply]) -> None:
        self._selection.measured(_lengths(names, [queue_figures(reply) for reply in replies]))
        self._exchange.call_later(STEP_S, self.step)

    def _update(self) -> None:
        """Request everything that the page shows."""
        names = self._selection.names
        opened = [] if self._opened is None else [self._opened]
        self._ask([*_NODE, *_qstats([*opened, *names])], lambda replies: self._send_state(names, replies))

    def _send_state(self, names: Sequence[bytes], replies: list[Reply]) -> None:
        info, nodes, hello, *queues = replies
        if isinstance(info, Failure) and info.text.startswith(_LOCKED):  # a password was set in the meantime
            if self._began:
                self._exchange.finish()
            else:
                self._exchange.answer(UNAVAILABLE, info.message)
            return
        figures = [queue_figures(reply) for reply in queues]
        opened = figures.pop(0) if self._opened is not None else None
        self._selection.measured(_lengths(names, figures))
        ranks = {name: rank for rank, name in enumerate(self._selection.names)}
        chosen = sorted(
            (ranks[name], queue)
            for name, queue in zip(names, figures, strict=True)
            if queue is not None and name in ranks
        )
        view = self._state.view
        self._send(
            {
                "now_ms": int(self._state.now_ms),
                "node": view.node_id.decode(),
                "leaving": bool(view.leaving),
                "actions": self._state.config.http_actions,
                "figures": node_figures(info),
                "members": members(nodes, hello),
                "known_members": int(view.size),
                "queues": [queue for _, queue in chosen],
                "complete": self._selection.complete,
                "opened": opened,
            }
        )
        self._exchange.call_later(STEP_S, self.step)

    def _send(self, update: dict[str, Any]) -> None:
        event = f"event: state\ndata: {json.dumps(update, separators=(',', ':'))}\n\n".encode()
        if self._began:
            self._exchange.push(event)
        else:  # the node has replied, so the stream can begin
            self._began = True
            self._exchange.stream(Answer(OK, event, content_type=EVENT_STREAM))


def _qstats(names: Sequence[bytes]) -> list[list[bytes]]:
    return [[b"qstat", name] for name in names]


def _lengths(names: Sequence[bytes], figures: Sequence[dict[str, Any] | None]) -> list[tuple[bytes, int | None]]:
    return [(name, None if one is None else one["len"]) for name, one in zip(names, figures, strict=True)]
