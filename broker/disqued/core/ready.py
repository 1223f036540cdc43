"""What the shell has to do after an input: the node's output as one batch.

The order of duties is the contract: first flush the sessions, then hang up. (Log records and bus messages will stand
before the replies.)
"""

from __future__ import annotations

from disqued.core.session import Session


class Ready:
    """Collects output between two inputs."""

    def __init__(self) -> None:
        self.sessions: list[Session] = []
        """Have output, or are to be closed once it is written."""
        self.hangups: list[Session] = []
        """Are to be closed at once."""

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
