"""Probes: does the node run (`/livez`), are clients to be sent to it (`/readyz`), may it be stopped now (`/stopz`)?

`/stopz?timeout=30` is for whoever is about to stop the node, such as a hook of Kubernetes. It answers as soon as no
other node is away, or after so many seconds at the latest; always with status 200, because the node will be stopped
whatever is answered. The text says which of both it was.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.httproutes import BAD_REQUEST, OK, UNAVAILABLE, Exchange, Route
from disqued.leaving.progress import jobs_left
from disqued.persistence.room import aof_of

if TYPE_CHECKING:
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState
    from disqued.node import Node

DEFAULT_TIMEOUT_S: Final = 30.0
LONGEST_TIMEOUT_S: Final = 3600
LOOK_EVERY_S: Final = 0.1
MOST_WAITING: Final = 8
"""More are told at once that they can not wait."""

_TIMEOUT: Final = re.compile(r"(?:.*&)?timeout=([^&]*)(?:&.*)?")
_SECONDS: Final = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,3})?")


def why_not_ready(node: Node) -> str:
    """Why clients are not to be sent here; empty when they are."""
    state = node.state
    if state.ended:
        return "this node ends"
    if state.loading:
        loader = aof_of(state).loader
        return loader.progress() if loader is not None else "this node could not load its jobs"
    if state.view.leaving:
        return "this node is leaving the cluster"
    return state.refusal


def why_not_safe(state: NodeState) -> str:
    """Why stopping this node now would leave jobs to too few nodes; empty when it would not.

    A node that loads has changed nothing and serves nobody. Others only answer when they have loaded.
    """
    if state.loading:
        return ""
    if state.view.leaving:
        left = jobs_left(state)
        return f"this node is leaving, jobs left to hand over: {left}" if left else ""
    for peer in state.view.peers.values():
        if peer.in_handshake:
            continue
        if not peer.connected or peer.failing:
            return f"{_name(peer)} does not answer"
        if peer.flags & kinds.NODE_LEAVING:
            return f"{_name(peer)} is leaving the cluster"
    return ""


def _name(peer: Peer) -> str:
    """A node as people know it."""
    where = peer.host or peer.ip
    return f"node {peer.id.decode('ascii', 'replace')} ({where.decode('utf-8', 'replace')}:{peer.port})"


def timeout_s(query: str) -> float | None:
    """For how long somebody wants to wait; None for what is no such time."""
    given = _TIMEOUT.fullmatch(query)
    if given is None:
        return DEFAULT_TIMEOUT_S
    seconds = float(given[1]) if _SECONDS.fullmatch(given[1]) else -1.0
    return seconds if 0 <= seconds <= LONGEST_TIMEOUT_S else None


def livez(_node: Node, exchange: Exchange) -> None:
    """Whoever reads this was answered by a loop that runs."""
    exchange.answer(OK, "alive")


def readyz(node: Node, exchange: Exchange) -> None:
    """Whether clients are to be sent here."""
    why = why_not_ready(node)
    exchange.answer(UNAVAILABLE if why else OK, f"not ready: {why}" if why else "ready")


def stopz(node: Node, exchange: Exchange) -> None:
    """Answer when the node can be stopped, or when the time is over."""
    wait_s = timeout_s(exchange.query)
    if wait_s is None:
        exchange.answer(BAD_REQUEST, f"timeout has to be a number of seconds, 0 to {LONGEST_TIMEOUT_S}")
    else:
        _Wait(node.state, exchange, exchange.now_s() + wait_s).look()


class _Wait:
    """Somebody waits until the node can be stopped."""

    def __init__(self, state: NodeState, exchange: Exchange, until_s: float) -> None:
        self._state = state
        self._exchange = exchange
        self._until_s = until_s

    def look(self) -> None:
        """Answer, or look again a little later."""
        exchange = self._exchange
        why = why_not_safe(self._state)
        left_s = self._until_s - exchange.now_s()
        if not why:
            exchange.answer(OK, "safe")
        elif left_s <= 0:
            exchange.answer(OK, f"not safe: {why}")
        else:
            exchange.call_later(min(LOOK_EVERY_S, left_s), self.look)


ROUTES: Final = (Route("/livez", livez), Route("/readyz", readyz), Route("/stopz", stopz, MOST_WAITING))
