"""Limits on the memory that clients hold, and on the time that they may be idle.

A reply takes little memory while its jobs exist, but a client can request the same jobs many times, and the bodies of
finished jobs stay in memory until every client has read them. Further requests of a client with many unread replies
therefore wait until it has read enough. If memory is used up nevertheless, the node disconnects clients that read
nothing, and clients that send more than there is memory for. If it is short, it also disconnects clients that together
hold much memory for requests that they do not complete.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.clients.origin import is_local, origin_of
from disqued.core.clients.session import Session
from disqued.core.cluster.peer import Link
from disqued.core.memory.accounting import BIG_BYTES, COPIES, FULL
from disqued.core.runtime.counters import CLOSED_FOR_MEMORY, CLOSED_UNAUTHENTICATED
from disqued.core.runtime.state import NodeState
from disqued.core.telemetry.loglimit import LogLimit
from disqued.errors import ReplyError, TooManyUnauthenticated, Unauthenticated

ALWAYS_ALLOWED_BYTES: Final = 1 << 20
"""A client may always hold this much, even when memory is used up."""
INCOMPLETE_BYTES: Final = 8 << 20
"""All clients together may always hold this much for requests that have not arrived completely."""
INCOMPLETE_MS: Final = (10_000, 10_000, 10_000, 1_000)
"""How long their requests may wait for the rest while they hold more than that, by memory level."""
UNREAD_BYTES: Final = 64 << 20
"""With more unread replies, further requests of a client wait; ALWAYS_ALLOWED_BYTES when memory is short."""
UNAUTHENTICATED_BYTES: Final = 64 << 10
"""The output for a client that has not authenticated; with more, it gets no further replies and is disconnected."""
UNAUTHENTICATED_MS: Final = 60_000
"""How long a client may take to authenticate: a program does so at once, a person types the password."""
LAST_WORDS_MS: Final = 1000
"""How long a client may take to read why it is disconnected."""
UNAUTHENTICATED_SHARE: Final = 4
"""One client in so many (`maxclients`) may be one that has not authenticated,"""
ORIGIN_SHARE: Final = 16
"""one in so many of one address. A restart makes many clients of one address connect at the same time."""
STALLED_CHECKS: Final = 10
"""At the first memory level, a client that has read nothing for so many checks is disconnected: for a second."""
IDLE_CHECK_MS: Final = 1000
"""The interval between checks for idle clients (`timeout`)."""


def _input_order(session: Session) -> tuple[bool, int]:
    """Sorts clients whose input waits: those first whose connections are closed first."""
    return session.user is not None, int(session.input_since_ms)


class ClientLimits:
    """The limits of one node, and the connections that hold much memory."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self._big_input_links: dict[Link, None] = {}
        """Links that receive a big frame."""
        self._unread: dict[int, Session] = {}
        """Sessions whose requests wait until their client has read more replies, by number."""
        self._next_idle_check_ms: i64 = 0
        self._log_limit = LogLimit(1)
        self._refused: dict[Session, int] = {}
        """Clients that were told why they are disconnected, and when they are at the latest."""

    def watch_link(self, link: Link) -> None:
        """Count the input of a link that receives a big frame, until the frame is complete."""
        self._big_input_links[link] = None

    def buffers_bytes(self) -> int:
        """The size of all output that waits to be sent, and of big incomplete frames."""
        state = self._state
        waiting = 0
        for session in list(state.ready.slow.values()):
            output: i64 = session.output_bytes()
            waiting += output
            session.stalled = session.stalled + 1 if 0 < session.unread_bytes <= output else 0
            session.unread_bytes = output
            if output == 0:
                del state.ready.slow[int(session.number)]
        for peer in state.view.peers.values():
            link = peer.link
            if link is not None and not link.closed:
                waiting += int(link.out_bytes)
                if link.carrier is not None:
                    waiting += link.carrier.unsent_bytes()
        for link in list(self._big_input_links):
            buffered = link.reader.buffered_bytes
            waiting += buffered
            if link.closed or buffered <= BIG_BYTES:
                del self._big_input_links[link]
        return waiting

    def must_read(self, session: Session) -> bool:
        """Whether the client's next requests must wait until it has read more replies."""
        limit: i64 = ALWAYS_ALLOWED_BYTES if self._state.lifecycle.memory.level() >= COPIES else UNREAD_BYTES
        waits = session.unsent_bytes() + session.new_bytes() > limit
        if waits:
            self._unread[session.number] = session
        return waits

    def resume_readers(self) -> None:
        """Continue with the requests of clients that have read enough."""
        for session in list(self._unread.values()):
            del self._unread[session.number]
            session.recount()
            if session.closed or not self.must_read(session):
                self._state.resumed.append(session)

    def bound_waiting_input(self, session: Session) -> None:
        """Disconnect a client whose waiting or incomplete requests take more memory than there is."""
        memory = self._state.lifecycle.memory
        if session.input_bytes <= ALWAYS_ALLOWED_BYTES or memory.level() < FULL:
            return
        if session.blocked is not None or self.must_read(session) or memory.input_bytes > INCOMPLETE_BYTES:
            self._close(session, f"{session.input_bytes} bytes of requests wait to be run")

    def close_incomplete(self) -> None:
        """If all clients together hold too much input, disconnect those whose requests wait longest for the rest.

        Clients that must authenticate go first. It is called while memory is short.
        """
        state = self._state
        memory = state.lifecycle.memory
        most_bytes: i64 = max(INCOMPLETE_BYTES, memory.share_bytes)
        if memory.input_bytes <= most_bytes:
            return
        holding = [session for session in state.sessions.values() if session.input_bytes > 0 and not session.closed]
        surplus_bytes: i64 = -most_bytes
        for session in holding:
            surplus_bytes += session.input_bytes
        waits_since_ms: i64 = state.now_ms - INCOMPLETE_MS[memory.level()]
        closed = 0
        closed_bytes: i64 = 0
        for session in sorted(holding, key=_input_order):
            if closed_bytes >= surplus_bytes:
                break
            if session.input_since_ms <= waits_since_ms:
                closed += 1
                closed_bytes += session.input_bytes
                state.counters.add(CLOSED_FOR_MEMORY)
                state.ready.hang_up(session)
        if closed > 0 and self._log_limit.allows("incomplete", int(state.now_ms)):
            state.host.log(
                "warning",
                f"Disconnecting clients with incomplete requests, memory is short: clients={closed} "
                f"input_bytes={closed_bytes}",
            )

    def bound_unauthenticated(self, session: Session) -> None:
        """Bound the clients that must authenticate, of which one is new: too many cost the longest waiting its place.

        A new client is not refused: otherwise those who never authenticate would keep all others out.
        """
        state = self._state
        waiting = state.unauthenticated
        maxclients: i64 = state.config.maxclients
        origin = origin_of(session.address.decode("utf-8", "replace"))
        session.origin = origin
        if len(waiting) > max(maxclients // UNAUTHENTICATED_SHARE, 1):
            self._refuse(next(iter(waiting.values())), TooManyUnauthenticated("clients"))
        elif not is_local(origin) and len(waiting) > max(maxclients // ORIGIN_SHARE, 1):
            same = [other for other in waiting.values() if other.origin == origin]
            if len(same) > max(maxclients // ORIGIN_SHARE, 1):
                self._refuse(same[0], TooManyUnauthenticated("clients of this address"))

    def close_unauthenticated(self) -> None:
        """Disconnect clients that have not authenticated in time. When memory is short, all that hold something."""
        state = self._state
        made_before_ms: i64 = state.now_ms - UNAUTHENTICATED_MS
        for session in list(state.unauthenticated.values()):
            if session.unauthenticated_ms > made_before_ms:
                break
            self._refuse(session, Unauthenticated(f"did not authenticate within {UNAUTHENTICATED_MS // 1000} seconds"))
        for session in list(self._refused):
            if session.closed or self._refused[session] <= state.now_ms:
                del self._refused[session]
                state.ready.hang_up(session)
        if state.lifecycle.memory.level() >= COPIES:
            for session in list(state.unauthenticated.values()):
                if session.input_bytes > 0 or session.unread_bytes > 0:
                    self._close_unauthenticated(session)

    def _refuse(self, session: Session, error: ReplyError) -> None:
        """Disconnect a client, after it was told why if it has read everything before."""
        if session.closing or session.output_bytes() > 0:
            self._close_unauthenticated(session)
            return
        state = self._state
        state.unauthenticated.pop(session.number, None)
        state.counters.add(CLOSED_UNAUTHENTICATED)
        session.out.append(error.encode())
        session.closing = True
        session.parser.discard()
        state.ready.flush(session)
        self._refused[session] = int(state.now_ms + LAST_WORDS_MS)

    def _close_unauthenticated(self, session: Session) -> None:
        self._state.unauthenticated.pop(session.number, None)
        self._state.counters.add(CLOSED_UNAUTHENTICATED)
        self._state.ready.hang_up(session)

    def has_replied_enough(self, session: Session) -> bool:
        """Whether a client that has not authenticated has caused so much output that its connection closes."""
        if session.number not in self._state.unauthenticated:
            return False
        if session.unsent_bytes() + session.new_bytes() <= UNAUTHENTICATED_BYTES:
            return False
        self._state.counters.add(CLOSED_UNAUTHENTICATED)
        session.out.append(Unauthenticated("caused too many replies without authentication").encode())
        session.closing = True
        return True

    def close_slow_reader(self) -> None:
        """Disconnect the client with most unread output among those that read none of it.

        When memory is used up, that is one that read nothing since the last check, otherwise for a second.
        """
        slowest: Session | None = None
        most_bytes: i64 = ALWAYS_ALLOWED_BYTES
        checks: i64 = 1 if self._state.lifecycle.memory.level() >= FULL else STALLED_CHECKS
        for session in self._state.ready.slow.values():
            if session.stalled >= checks and session.unread_bytes > most_bytes and not session.closed:
                slowest = session
                most_bytes = session.unread_bytes
        if slowest is not None:
            self._close(slowest, f"{most_bytes} bytes of replies wait to be read")

    def _close(self, session: Session, why: str) -> None:
        """Disconnect a client because memory is used up."""
        state = self._state
        address = session.address.decode("utf-8", "replace")
        state.host.log("warning", f"Closing the connection of client {address}, memory is short: {why}.")
        state.counters.add(CLOSED_FOR_MEMORY)
        state.ready.hang_up(session)

    def close_idle(self) -> None:
        """Once per second, disconnect clients that were idle for `timeout`; waiting and monitoring clients stay."""
        state = self._state
        if state.now_ms < self._next_idle_check_ms:
            return
        self._next_idle_check_ms = state.now_ms + IDLE_CHECK_MS
        timeout_ms: i64 = state.config.timeout * 1000
        if timeout_ms <= 0:
            return
        active_before_ms: i64 = state.now_ms - timeout_ms
        for session in list(state.sessions.values()):
            if session.active_ms < active_before_ms and session.blocked is None and not session.monitor:
                state.ready.hang_up(session)
