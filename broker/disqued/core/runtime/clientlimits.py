"""Clients that hold much memory, by not reading their replies or by sending while they wait, and clients that are idle.

A reply takes little memory while its jobs are there, but a client can ask for the same ones many times, and jobs that
are done stay for who has not read them. So a client that has much to read has its next requests wait until it did.
When memory is used up all the same, who reads nothing is hung up on, and who sends more than there is room for.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.clients.session import Session
from disqued.core.memory.accounting import BIG_BYTES, BUCKET_BYTES, COPIES, FULL
from disqued.core.runtime.counters import CLOSED_FOR_MEMORY
from disqued.core.runtime.state import NodeState

GREEDY_BYTES: Final = 1 << 20
"""A client may hold so much however short memory is, and more while it reads."""
INCOMPLETE_BYTES: Final = 8 << 20
"""All clients together may hold so much for requests of which a part is still to come, however short memory is."""
UNREAD_BYTES: Final = 64 << 20
"""So many bytes of replies may wait before further requests of their client do; GREEDY_BYTES when memory is short."""
IDLE_CHECK_MS: Final = 1000
"""From one look for idle clients (`timeout`) to the next."""


def buffers_bytes(state: NodeState) -> int:
    """What waits to be sent or written, and the buckets of wake times."""
    waiting = int(state.lifecycle.timers.buckets) * BUCKET_BYTES + int(state.ready.unwritten_bytes)
    for session in list(state.ready.slow.values()):
        output: i64 = session.output_bytes()
        waiting += output
        session.stalled = 0 < session.unread_bytes <= output
        session.unread_bytes = output
        if output == 0:
            del state.ready.slow[int(session.number)]
    for peer in state.view.peers.values():
        link = peer.link
        if link is not None and not link.closed:
            waiting += int(link.out_bytes)
            if link.carrier is not None:
                waiting += link.carrier.unsent_bytes()
    for link in list(state.filling):
        buffered = link.reader.buffered_bytes
        waiting += buffered
        if link.closed or buffered <= BIG_BYTES:
            del state.filling[link]
    return waiting


def must_read(state: NodeState, session: Session) -> bool:
    """Whether a client has so many replies to read that its next requests wait until it did."""
    limit: i64 = GREEDY_BYTES if state.lifecycle.memory.level() >= COPIES else UNREAD_BYTES
    waits = session.unsent_bytes() + session.new_bytes() > limit
    if waits:
        state.unread[session.number] = session
    return waits


def let_run(state: NodeState) -> None:
    """Go on with the requests of clients that read enough."""
    for session in list(state.unread.values()):
        del state.unread[session.number]
        session.recount()
        if session.closed or not must_read(state, session):
            state.resumed.append(session)


def sends_too_much(state: NodeState, session: Session) -> bool:
    """Whether a client has sent more than there is memory for: what waits to be run, or is not complete yet."""
    memory = state.lifecycle.memory
    if session.input_bytes <= GREEDY_BYTES or memory.level() < FULL:
        return False
    waits = session.blocked is not None or must_read(state, session)
    return waits or memory.input_bytes > INCOMPLETE_BYTES


def close_greediest(state: NodeState) -> None:
    """Hang up on the client that lets most output wait and reads none of it."""
    greediest: Session | None = None
    most_bytes: i64 = GREEDY_BYTES
    for session in state.ready.slow.values():
        if session.stalled and session.unread_bytes > most_bytes and not session.closed:
            greediest = session
            most_bytes = session.unread_bytes
    if greediest is not None:
        hang_up_greedy(state, greediest, f"{most_bytes} bytes of replies wait to be read")


def hang_up_greedy(state: NodeState, session: Session, why: str) -> None:
    """Close a client's connection because memory is used up."""
    who = session.address.decode("utf-8", "replace")
    state.host.log("warning", f"Closing the connection of client {who}, memory is used up: {why}.")
    state.counters.add(CLOSED_FOR_MEMORY)
    state.ready.hang_up(session)


class IdleClients:
    """Looks at the clients of a node once per second."""

    def __init__(self) -> None:
        self._next_ms: i64 = 0

    def visit(self, state: NodeState) -> None:
        """Called more often than that."""
        if state.now_ms >= self._next_ms:
            self._next_ms = state.now_ms + IDLE_CHECK_MS
            timeout_ms = state.config.timeout * 1000
            if timeout_ms > 0:
                _hang_up_idle(state, state.now_ms - timeout_ms)


def _hang_up_idle(state: NodeState, active_before_ms: i64) -> None:
    """Hang up on clients that sent nothing since, but for those that wait for a job or watch."""
    for session in list(state.sessions.values()):
        if session.active_ms < active_before_ms and session.blocked is None and not session.monitor:
            state.ready.hang_up(session)
