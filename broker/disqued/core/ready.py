"""What the shell has to do after an input: the node's output as one batch.

The order of duties is the contract. First what changed goes to the append only file (`Node.log`), and output that has
to wait for it is held back (`Gate`). Then write to the links of the cluster bus, flush the sessions, hang up, open new
links and look up names.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.link import Link
from disqued.core.session import Session


class Ready:
    """Collects output between two inputs."""

    def __init__(self) -> None:
        self.changes: list[object] = []
        """What changed and is to be logged: the notes of the journal."""
        self.links: list[Link] = []
        """Have output."""
        self.confirmations: list[Confirmation] = []
        """Frames that tell other nodes what has to be logged before."""
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
        self.logged: i64 = 0
        """How many times changes were given to the append only file,"""
        self.safe: i64 = 0
        """and how many of these reached it as `appendfsync` promises."""
        self.unwritten_bytes: i64 = 0
        """What waited to be written to it lately."""

    def tell_changed(self, session: Session) -> None:
        """What the session is told may tell of what changed in this turn."""
        session.tells_of = self.logged + 1

    def tell_again(self, session: Session) -> None:
        """What the session is told may be known from any change so far, whoever made it."""
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


class Confirmation:
    """A frame for a link that may only leave when the changes before it are logged."""

    def __init__(self, link: Link, frame: bytes) -> None:
        self.link = link
        self.frame = frame
