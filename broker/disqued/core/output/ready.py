"""The output of one turn of a node, as one batch in one order.

A node collects what it has to say in `Ready`. `Ready.carry` is the only place that knows the order: first the
durability barrier holds back what tells of changes that are not logged yet (`output.barrier`; `Node.carry` has them
logged before), then frames go to the links of the cluster bus, replies to the clients, connections that are given up
are closed, and new links are opened. So another node hears of a change no later than a client does. The server and the
simulator are drivers (`Driver`): they write what they are given, when they are given it.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.bus.kinds import KINDS
from disqued.core.clients.session import Session
from disqued.core.cluster.peer import Link
from disqued.core.output.barrier import Barrier, Confirmation
from disqued.core.telemetry.traffic import Traffic

COUNTED_BYTES: Final = 4096
"""A client of which more than this is held back is counted among those that let output wait."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Driver:
    """Carries out a batch: the server on sockets, the simulator in memory. Links have a `Carrier` of their own."""

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
    """Collects output between two turns."""

    def __init__(self, traffic: list[Traffic]) -> None:
        self._traffic = traffic
        self.changes: list[object] = []
        """Changes to log: the notes of the journal."""
        self.links: list[Link] = []
        """Links with output."""
        self.confirmations: list[Confirmation] = []
        """Frames that tell other nodes of changes, to be sent once these are logged."""
        self.sessions: list[Session] = []
        """Sessions with output, or to be closed once it is written."""
        self.hangups: list[Session] = []
        """Sessions to close at once."""
        self.link_hangups: list[Link] = []
        """Links to close at once."""
        self.dials: list[Link] = []
        """Links to open, each to its peer."""
        self.lookups: list[bytes] = []
        """Host names to resolve."""
        self.logged: i64 = 0
        """Number of the last group of changes that was given to the append only file."""
        self.safe: i64 = 0
        """Number of the last group that reached it as `appendfsync` promises."""
        self.unwritten_bytes: i64 = 0
        """How much waited to be written to the append only file lately."""
        self.slow: dict[int, Session] = {}
        """Sessions that let output wait, by number."""
        self.output_limited: bool = False
        """Clients that let too much output wait are disconnected."""
        self.barrier = Barrier()

    @property
    def pending(self) -> bool:
        """Whether there is output that the barrier does not hold back."""
        return bool(self.links or self.sessions or self.hangups or self.link_hangups or self.dials or self.lookups)

    def carry(self, driver: Driver) -> None:
        """Write everything that may leave, in the order of this module's contract.

        Output that comes up meanwhile, for example because a connection fails, stays for the next call.
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
        """Hold back the output that tells of unsafe changes, and let go of what was held back and is safe now."""
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
        """Count a client of which much is held back among those that let output wait."""
        if session.held_bytes > COUNTED_BYTES:
            self.slow[int(session.number)] = session
            if self.output_limited:
                session.watch_output()

    def _confirm(self, confirmations: list[Confirmation]) -> None:
        for confirmation in confirmations:
            if not confirmation.link.closed:
                self.put(confirmation.link, confirmation.frame)

    def _reach_out(self, driver: Driver) -> None:
        """Open new links and look up names. What was written to a link already leaves when it is connected."""
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
        """Have a frame written to a link."""
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

    def confirm(self, link: Link, frame: bytes) -> None:
        """Have a frame written to a link as soon as all changes so far are logged."""
        self.confirmations.append(Confirmation(link, frame))

    def tell_changed(self, session: Session) -> None:
        """The session's output may tell of a change of this turn."""
        session.tells_of = self.logged + 1

    def tell_again(self, session: Session) -> None:
        """The session's output may tell of any change so far, whoever made it."""
        session.tells_of = self.logged + 1 if self.changes else max(self.logged, session.tells_of)

    def flush(self, session: Session) -> None:
        """Have the session's output written."""
        if not session.flushing:
            session.flushing = True
            self.sessions.append(session)

    def hang_up(self, session: Session) -> None:
        """Have the connection closed without waiting for its output."""
        if not session.closed:
            session.closed = True
            self.hangups.append(session)

    def hang_up_link(self, link: Link) -> None:
        """Have the link closed; it is told no more, and `link_closed` is not called for it."""
        if not link.closed:
            link.closed = True
            link.out.clear()
            link.out_bytes = 0
            self.link_hangups.append(link)
