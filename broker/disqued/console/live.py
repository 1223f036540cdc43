"""The live figures of one page, as server-sent events: once a second all it shows, and in between a look for queues."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from disqued.console.calling import Ask
from disqued.console.choice import Choice
from disqued.console.figures import members, node_figures, queue_figures
from disqued.core.runtime.state import NodeState
from disqued.httproutes import OK, UNAVAILABLE, Answer, Exchange
from disqued.resp.replies import Failure, Reply

FIRST_S: Final = 0.1
"""Until the first event: queues are looked for before."""
BEAT_S: Final = 1.0
"""Between two events."""
STEP_S: Final = 0.02
"""Between two looks for queues, or whether the client reads again,"""
REST_S: Final = 2.0
"""and when all were looked at."""
EVENT_STREAM: Final = "text/event-stream; charset=utf-8"
_LOCKED: Final = b"NOAUTH"
_NODE: Final = ((b"info",), (b"cluster", b"nodes"), (b"hello",))


class Live:
    """One page that is told."""

    def __init__(self, state: NodeState, exchange: Exchange, ask: Ask, choice: Choice, opened: bytes | None) -> None:
        """`opened` is a queue that is shown whatever its rank."""
        self._state = state
        self._exchange = exchange
        self._ask = ask
        self._choice = choice
        self._opened = opened
        self._beat_s = exchange.now_s() + FIRST_S
        self._scan_s = 0.0
        self._began = False

    def step(self) -> None:
        """Do what is due, then wait for the next step."""
        exchange = self._exchange
        now_s = exchange.now_s()
        if self._began and not exchange.reads:
            exchange.call_later(STEP_S, self.step)
        elif now_s >= self._beat_s:
            self._beat_s = now_s + BEAT_S
            self._beat()
        elif names := self._choice.to_measure():
            self._ask(_qstats(names), lambda replies: self._measured(names, replies))
        elif self._choice.sift():
            exchange.call_later(STEP_S, self.step)
        elif now_s >= self._scan_s:
            self._ask([[b"qscan", *self._choice.scan()]], self._scanned)
        else:
            exchange.call_later(min(self._beat_s, self._scan_s) - now_s, self.step)

    def _scanned(self, replies: list[Reply]) -> None:
        self._choice.scanned(replies[0])
        if self._choice.round_ended or not isinstance(replies[0], list):
            self._scan_s = self._exchange.now_s() + REST_S
        self._exchange.call_later(STEP_S, self.step)

    def _measured(self, names: Sequence[bytes], replies: list[Reply]) -> None:
        self._choice.measured(_lengths(names, [queue_figures(reply) for reply in replies]))
        self._exchange.call_later(STEP_S, self.step)

    def _beat(self) -> None:
        """Ask for all that is shown."""
        names = self._choice.names
        opened = [] if self._opened is None else [self._opened]
        self._ask([*_NODE, *_qstats([*opened, *names])], lambda replies: self._tell(names, replies))

    def _tell(self, names: Sequence[bytes], replies: list[Reply]) -> None:
        info, nodes, hello, *queues = replies
        if isinstance(info, Failure) and info.text.startswith(_LOCKED):  # a password was set meanwhile
            if self._began:
                self._exchange.finish()
            else:
                self._exchange.answer(UNAVAILABLE, info.message)
            return
        figures = [queue_figures(reply) for reply in queues]
        opened = figures.pop(0) if self._opened is not None else None
        self._choice.measured(_lengths(names, figures))
        ranks = {name: rank for rank, name in enumerate(self._choice.names)}
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
                "complete": self._choice.complete,
                "opened": opened,
            }
        )
        self._exchange.call_later(STEP_S, self.step)

    def _send(self, said: dict[str, Any]) -> None:
        event = f"event: state\ndata: {json.dumps(said, separators=(',', ':'))}\n\n".encode()
        if self._began:
            self._exchange.push(event)
        else:  # only now it is known that the node answers
            self._began = True
            self._exchange.stream(Answer(OK, event, content_type=EVENT_STREAM))


def _qstats(names: Sequence[bytes]) -> list[list[bytes]]:
    return [[b"qstat", name] for name in names]


def _lengths(names: Sequence[bytes], figures: Sequence[dict[str, Any] | None]) -> list[tuple[bytes, int | None]]:
    return [(name, None if one is None else one["len"]) for name, one in zip(names, figures, strict=True)]
