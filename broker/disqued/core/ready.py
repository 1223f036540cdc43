"""What the shell has to do after an input: the node's output as one batch.

The order of duties is the contract: first write to the links of the cluster bus, then flush the sessions, then hang up,
then open new links and look up names. (Log records will stand before all of them.)
"""

from __future__ import annotations

from disqued.core.link import Link
from disqued.core.session import Session


class Ready:
    """Collects output between two inputs."""

    def __init__(self) -> None:
        self.links: list[Link] = []
        """Have output."""
        self.sessions: list[Session] = []
        """Have output, or are to be closed once it is written."""
        self.hangups: list[Session] = []
        """Are to be closed at once."""
        self.link_hangups: list[Link] = []
        """Are to be closed at once."""
        self.dials: list[Link] = []
        """Are to be opened, each to its peer."""
        self.lookups: list[bytes] = []
        """Names whose addresses the node wants to know."""

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
