"""Live updates of one page as server-sent events: the state of the cluster once a second, and scans in between.

Each member answers for itself (`feed`): this node to commands, the others to queries on the cluster bus. What has not
been answered in time is missing in the sums, and the page says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from math import inf
from typing import Any, Final

from disqued.console.calling import Calls, Cancel, Requests, Then
from disqued.console.feed import Feed
from disqued.console.figures import members
from disqued.console.selection import QueueSelection
from disqued.console.sums import longest, queue_rows, queue_sums, totals
from disqued.core.runtime.state import NodeState
from disqued.httproutes import OK, UNAVAILABLE, Answer, Exchange
from disqued.queries.room import FEATURE_QUERY
from disqued.resp.replies import Reply

FIRST_S: Final = 0.1
"""Delay of the first figures of this node, for a first scan and the first answers of other members."""
STEP_S: Final = 0.02
"""Interval of scan steps, and of checks whether the client reads again."""
MAX_ASKED: Final = 64
"""How many other members are asked."""
UNSUPPORTED: Final = "unsupported"
"""The state of a member that does not know queries."""
EVENT_STREAM: Final = "text/event-stream; charset=utf-8"
_LOCKED: Final = "NOAUTH"
_MEMBERS: Final = ((b"cluster", b"nodes"), (b"hello",))


class Live:
    """The live updates of one page."""

    def __init__(
        self,
        state: NodeState,
        exchange: Exchange,
        calls: Calls,
        selection: Callable[[], QueueSelection],
        opened: bytes | None,
    ) -> None:
        """`selection` makes a selection of queues for one member; `opened` is a queue that is always included."""
        self._state = state
        self._exchange = exchange
        self._calls = calls
        self._selection = selection
        self._opened = opened
        self._began = False
        self._own = Feed(self._ask_own, selection(), exchange.now_s() + FIRST_S, self._ask_members, inf)
        self._others: dict[str, Feed] = {}
        exchange.at_end(self._stop)

    def step(self) -> None:
        """Do what is due, and schedule the next step."""
        exchange = self._exchange
        now_s = exchange.now_s()
        if self._began and not exchange.reads:
            exchange.call_later(STEP_S, self.step)
            return
        self._follow_members(now_s)
        wanted = self._wanted()
        feeds = self._feeds().values()
        for feed in feeds:
            feed.step(now_s, wanted)
        exchange.call_later(max(STEP_S, min(feed.due_s for feed in feeds) - now_s), self.step)

    def _follow_members(self, now_s: float) -> None:
        """Ask those nodes that are members now."""
        peers = [peer for peer in self._state.view.peers.values() if not peer.in_handshake]
        known = {peer.id.decode() for peer in peers[:MAX_ASKED]}
        for gone in self._others.keys() - known:
            self._others.pop(gone).close()
        for node in sorted(known - self._others.keys()):
            self._others[node] = Feed(self._asking(node.encode()), self._selection(), now_s, lambda: None)

    def _feeds(self) -> dict[str, Feed]:
        """This node, then the others."""
        return {self._state.view.node_id.decode(): self._own, **self._others}

    def _wanted(self) -> list[bytes]:
        """The queues that the page shows."""
        opened = [] if self._opened is None else [self._opened]
        return [*opened, *longest(self._feeds().values(), self._own.selection)]

    def _ask_own(self, requests: Requests, then: Then) -> Cancel:
        local = [[*words, b"LOCAL"] if words[0] == b"qscan" else words for words in requests]
        self._calls.ask(local, then)  # the other members add it themselves
        return lambda: None

    def _asking(self, member: bytes) -> Callable[[Requests, Then], Cancel | None]:
        return lambda requests, then: self._calls.ask_member(member, requests, then)

    def _ask_members(self) -> None:
        """This node has told its figures: ask it for the members, too."""
        if not self._own.why.startswith(_LOCKED):
            self._calls.ask(_MEMBERS, self._send_state)
        elif self._began:  # a password was set in the meantime
            self._exchange.finish()
        else:
            self._exchange.answer(UNAVAILABLE, self._own.why)

    def _send_state(self, replies: list[Reply]) -> None:
        nodes, hello = replies
        feeds = self._feeds()
        view = self._state.view
        sums = [(name, queue_sums(feeds, name)) for name in longest(feeds.values(), self._own.selection)]
        rank = self._own.selection.rank
        ranked = sorted((rank(name, row["len"]), row) for name, row in sums if row is not None)
        answering = [feed for feed in feeds.values() if feed.figures]
        self._send(
            {
                "now_ms": int(self._state.now_ms),
                "node": view.node_id.decode(),
                "leaving": bool(view.leaving),
                "actions": self._state.config.http_actions,
                "figures": self._own.figures,
                "totals": {**totals(feeds.values()), "asked": len(feeds)},
                "members": [row | self._answers(row["id"]) for row in members(nodes, hello)],
                "known_members": int(view.size),
                "queues": [row for _, row in ranked],
                "complete": all(feed.selection.complete for feed in answering),
                "opened": None if self._opened is None else queue_sums(feeds, self._opened),
                "opened_at": [] if self._opened is None else queue_rows(feeds, self._opened),
            }
        )

    def _answers(self, node: str) -> dict[str, Any]:
        """What a member told about itself."""
        feed = self._feeds().get(node)
        if feed is None:
            return {"answer": UNSUPPORTED, "why": "", "figures": {}}
        peer = self._state.view.peers.get(node.encode())
        old = peer is not None and peer.connected and not peer.features & FEATURE_QUERY
        return {"answer": UNSUPPORTED if old else feed.state, "why": feed.why, "figures": feed.figures}

    def _stop(self) -> None:
        """The page is gone: refer to nothing in a circle, because there is no garbage collector."""
        for feed in self._feeds().values():
            feed.close()
        self._others.clear()

    def _send(self, update: dict[str, Any]) -> None:
        event = f"event: state\ndata: {json.dumps(update, separators=(',', ':'))}\n\n".encode()
        if self._began:
            self._exchange.push(event)
        else:  # the node has replied, so the stream can begin
            self._began = True
            self._exchange.stream(Answer(OK, event, content_type=EVENT_STREAM))
