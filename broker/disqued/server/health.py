"""Probes: whether the node runs (`/livez`), serves clients (`/readyz`), and can be stopped safely (`/stopz`).

Call `/stopz?timeout=30` before you stop the node, for example in a Kubernetes preStop hook. It answers as soon as all
other nodes are available and no copy of a job is missing, or when the timeout in seconds is over. The status is always
200, because the node will be stopped anyway; the text says whether it is safe. The number of waiting requests is
limited only by that of connections, so that nobody can keep the preStop hook out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.httproutes import BAD_REQUEST, OK, UNAVAILABLE, Exchange, Route
from disqued.leaving.progress import jobs_left
from disqued.persistence.room import aof_of
from disqued.repair.room import repair_of
from disqued.server.httpport import MOST_CONNECTIONS

if TYPE_CHECKING:
    from disqued.core.cluster.peer import Peer
    from disqued.core.runtime.state import NodeState
    from disqued.node import Node

DEFAULT_TIMEOUT_S: Final = 30.0
LONGEST_TIMEOUT_S: Final = 3600
CHECK_EVERY_S: Final = 0.1
_TIMEOUT: Final = re.compile(r"(?:.*&)?timeout=([^&]*)(?:&.*)?")
_SECONDS: Final = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,3})?")


def why_not_ready(node: Node) -> str:
    """Why the node does not serve clients; empty if it does."""
    state = node.state
    if state.ending or state.ended:
        return "this node is shutting down"
    if state.loading:
        loader = aof_of(state).loader
        return loader.progress.line() if loader is not None else "this node could not load its jobs"
    if state.view.leaving:
        return "this node is leaving the cluster"
    if state.client_pause.until_ms > state.now_ms:
        return "all clients are paused (CLIENT PAUSE); CLIENT UNPAUSE ends the pause"
    return state.write_refusal or state.clock_refusal


def why_not_safe(state: NodeState) -> str:
    """Why stopping this node now would leave jobs with too few copies; empty if it is safe.

    A node that is loading has changed nothing and serves no client. Other nodes connect only after they have loaded.
    """
    if state.loading:
        return ""
    if state.view.leaving:
        left = jobs_left(state)
        return f"this node is leaving, jobs left to transfer: {left}" if left else state.events.unsafe_to_stop()
    for peer in state.view.peers.values():
        if peer.in_handshake:
            continue
        if not peer.connected or peer.failing:
            return f"{_name(peer)} does not answer"
        if peer.flags & kinds.NODE_LEAVING:
            return f"{_name(peer)} is leaving the cluster"
    return repair_of(state).waits_for() or state.events.unsafe_to_stop()


def _name(peer: Peer) -> str:
    """A node as the text shows it."""
    where = peer.host or peer.ip
    return f"node {peer.id.decode('ascii', 'replace')} ({where.decode('utf-8', 'replace')}:{peer.port})"


def timeout_s(query: str) -> float | None:
    """The requested timeout in seconds; None if it is invalid."""
    given = _TIMEOUT.fullmatch(query)
    if given is None:
        return DEFAULT_TIMEOUT_S
    seconds = float(given[1]) if _SECONDS.fullmatch(given[1]) else -1.0
    return seconds if 0 <= seconds <= LONGEST_TIMEOUT_S else None


def livez(_node: Node, exchange: Exchange) -> None:
    """Answer always: the event loop runs."""
    exchange.answer(OK, "alive")


def readyz(node: Node, exchange: Exchange) -> None:
    """Answer whether the node serves clients."""
    why = why_not_ready(node)
    exchange.answer(UNAVAILABLE if why else OK, f"not ready: {why}" if why else "ready")


def stopz(node: Node, exchange: Exchange) -> None:
    """Answer when the node can be stopped safely, or when the timeout is over."""
    wait_s = timeout_s(exchange.query)
    if wait_s is None:
        exchange.answer(BAD_REQUEST, f"timeout must be a number of seconds from 0 to {LONGEST_TIMEOUT_S}")
    else:
        _Wait(node.state, exchange, exchange.now_s() + wait_s).check()


class _Wait:
    """A request that waits until the node can be stopped safely."""

    def __init__(self, state: NodeState, exchange: Exchange, until_s: float) -> None:
        self._state = state
        self._exchange = exchange
        self._until_s = until_s

    def check(self) -> None:
        """Answer, or check again later."""
        exchange = self._exchange
        why = why_not_safe(self._state)
        left_s = self._until_s - exchange.now_s()
        if not why:
            exchange.answer(OK, "safe")
        elif left_s <= 0:
            exchange.answer(OK, f"not safe: {why}")
        else:
            exchange.call_later(min(CHECK_EVERY_S, left_s), self.check)


ROUTES: Final = (Route("/livez", livez), Route("/readyz", readyz), Route("/stopz", stopz, MOST_CONNECTIONS))
