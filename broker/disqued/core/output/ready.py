"""The output of one turn of a node, as one batch in one order.

A node collects its output in `Ready`. `Ready.carry` is the only place that knows the order: first the durability
barrier holds back output that depends on changes which are not logged yet (`output.barrier`; `Node.carry` logs them
before). Then frames are written to the links of the cluster bus and replies to the clients, abandoned connections are
closed, and new links are opened. Other nodes therefore learn of a change no later than clients do. The server and the
simulator are drivers (`Driver`): they write what `carry` gives them, in that order.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.bus.kinds import KINDS, REPLJOB
from disqued.core.clients.session import Session
from disqued.core.cluster.peer import Link
from disqued.core.output.barrier import Barrier, Confirmation
from disqued.core.telemetry.traffic import Traffic

COUNTED_BYTES: Final = 4096
"""A client with more held output than this is watched as a slow client."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Driver:
    """Writes a batch: the server to sockets, the simulator in memory. Each link has a `Carrier` of its own."""

    def write_session(self, session: Session) -> None:
        """Write the output of a client's connection, then close it if the session is closing and holds nothing back."""
        raise NotImplementedError

    def abort_session(self, session: Session) -> None:
        """Close a client's connection without waiting for its output."""
        raise NotImplementedError

    def dial(self, link: Link) -> None:
        """Open a connection to the peer of a link."""
        raise NotImplementedError

    def look_up(self, name: bytes) -> None:
        """Resolve a host name; `Node.found` gets the answer."""
        raise NotImplementedError


class Ready:
    """Collects the output of a turn."""

    def __init__(self, traffic: list[Traffic]) -> None:
        self._traffic = traffic
        self.changes: list[object] = []
        """Changes to log: the notes of the journal."""
        self.gathering: list[Link] = []
        """Links with messages about jobs that become lists at the end of the turn (`runtime.outbox`)."""
        self.links: list[Link] = []
        """Links with output."""
        self.confirmations: list[Confirmation] = []
        """Frames that tell other nodes of changes, sent once the changes are logged."""
        self.sessions: list[Session] = []
        """Sessions with output, or with a connection to close after their output."""
        self.hangups: list[Session] = []
        """Sessions to close at once."""
        self.link_hangups: list[Link] = []
        """Links to close at once."""
        self.dials: list[Link] = []
        """Links to open, each to its peer."""
        self.lookups: list[bytes] = []
        """Host names to resolve."""
        self.turn_work: bool = False
        """A room has work at the end of this turn, before its output leaves."""
        self.logged: i64 = 0
        """Number of the last group of changes that was given to the append-only file."""
        self.safe: i64 = 0
        """Number of the last group that reached it as `appendfsync` promises."""
        self.slow: dict[int, Session] = {}
        """Sessions whose clients do not read their output, by number."""
        self.output_limited: bool = False
        """`client-output-buffer-limit` is set: clients that do not read their output are disconnected."""
        self.barrier = Barrier()

    @property
    def pending(self) -> bool:
        """Whether there is output that the barrier does not hold back."""
        return bool(self.links or self.sessions or self.hangups or self.link_hangups or self.dials or self.lookups)

    def carry(self, driver: Driver) -> None:
        """Write all output that is not held back, in the order that this module describes.

        Output that is added meanwhile, for example because a connection fails, stays for the next call.
        """
        if self.safe < self.logged or self.confirmations or not self.barrier.empty:
            self._pass_barrier()
        if self.links:
            links = self.links
            self.links = []
            for link in links:
                link.flush()
        if self.sessions:
            sessions = self.sessions
            self.sessions = []
            for session in sessions:
                driver.write_session(session)
        if self.hangups:
            hangups = self.hangups
            self.hangups = []
            for session in hangups:
                driver.abort_session(session)
        if self.link_hangups:
            link_hangups = self.link_hangups
            self.link_hangups = []
            for link in link_hangups:
                carrier = link.carrier
                if carrier is not None:
                    carrier.close()
        if self.dials or self.lookups:
            self._reach_out(driver)

    def _pass_barrier(self) -> None:
        """Hold back output that depends on unsafe changes, and release held output that is safe now."""
        barrier = self.barrier
        if self.safe < self.logged or not barrier.empty:
            passed: list[Session] = []
            for session in self.sessions:
                if session.tells_of <= self.safe and session.held is None:
                    passed.append(session)
                else:
                    barrier.hold(session, self.logged)
                    self._count_held(session)
            self.sessions = passed
            if self.confirmations:
                barrier.hold_confirmations(self.confirmations, self.logged)
        else:
            self._confirm(self.confirmations)
        self.confirmations = []
        held = barrier.release(self.safe)
        while held is not None:
            for session in held.sessions:
                if session.held is not None:  # otherwise the client has disconnected
                    session.let_go()
                    self.flush(session)
            self._confirm(held.confirmations)
            held = barrier.release(self.safe)

    def _count_held(self, session: Session) -> None:
        """Watch a client as a slow client if much of its output is held back."""
        if session.held_bytes > COUNTED_BYTES:
            self.slow[int(session.number)] = session
            if self.output_limited:
                session.watch_output()

    def _confirm(self, confirmations: list[Confirmation]) -> None:
        for confirmation in confirmations:
            if not confirmation.link.closed:
                self.put(confirmation.link, confirmation.frame)

    def _reach_out(self, driver: Driver) -> None:
        """Open new links and resolve names. Output of a new link is sent when it is connected."""
        dials = self.dials
        self.dials = []
        for link in dials:
            if not link.closed:
                driver.dial(link)
                link.flush()
        lookups = self.lookups
        self.lookups = []
        for name in lookups:
            driver.look_up(name)

    # --- collecting ---------------------------------------------------------------------------------------------------

    def put(self, link: Link, frame: bytes) -> None:
        """Write a frame to a link."""
        link.out.append(frame)
        size: i64 = len(frame)
        link.out_bytes += size
        if link.out_bytes > link.congested_bytes:
            link.congested = True
        kind: i64 = frame[13]
        self._traffic[kind & (KINDS - 1)].count_sent(size)
        if not link.flushing:
            link.flushing = True
            self.links.append(link)

    def put_opening(self, link: Link, frame: bytes) -> None:
        """Write a frame to a link before all other output, even while that waits for the proof of the other end."""
        link.opening.append(frame)
        kind: i64 = frame[13]
        self._traffic[kind & (KINDS - 1)].count_sent(len(frame))
        self._flush_link(link)

    def release(self, link: Link) -> None:
        """Write the output of a link that waited for the proof of the other end."""
        link.holding = False
        self._flush_link(link)

    def _flush_link(self, link: Link) -> None:
        if not link.flushing:
            link.flushing = True
            self.links.append(link)

    def put_copy(self, link: Link, frame: bytes) -> None:
        """Write a REPLJOB with one job to a link. If a REPLJOB is the last frame there, the job is added to it."""
        size: i64 = link.copies.join(link.out, frame)
        if size == 0:
            self.put(link, frame)
            return
        link.out_bytes += size
        if link.out_bytes > link.congested_bytes:
            link.congested = True
        self._traffic[REPLJOB].sent_bytes.value += size

    def put_when_logged(self, link: Link, frame: bytes) -> None:
        """Write a frame to a link when all changes so far are logged."""
        self.confirmations.append(Confirmation(link, frame))

    def tell_changed(self, session: Session) -> None:
        """The session's output depends on a change of this turn."""
        session.tells_of = self.logged + 1

    def tell_again(self, session: Session) -> None:
        """The session's output may depend on any change so far, also of other clients."""
        session.tells_of = self.logged + 1 if self.changes else max(self.logged, session.tells_of)

    def flush(self, session: Session) -> None:
        """Write the session's output in this turn."""
        if not session.flushing:
            session.flushing = True
            self.sessions.append(session)

    def hang_up(self, session: Session) -> None:
        """Close the connection without waiting for its output."""
        if not session.closed:
            session.closed = True
            self.hangups.append(session)

    def hang_up_link(self, link: Link) -> None:
        """Close the link: nothing more is sent on it, and `link_closed` is not called for it."""
        if not link.closed:
            link.closed = True
            link.out.clear()
            link.out_bytes = 0
            self.link_hangups.append(link)
