"""CLIENT PAUSE: until when no client's commands run, and which clients wait for that.

The commands with which a client connects, authenticates and ends the pause run nevertheless (`Command.allowed_paused`).
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.clients.session import Session


class ClientPause:
    """The pause of all clients of one node."""

    def __init__(self) -> None:
        self.until_ms: i64 = 0
        """The end of the pause, unix milliseconds."""
        self.held: dict[int, Session] = {}
        """Sessions whose input waits for the end of the pause, by number."""

    def extend(self, until_ms: i64) -> None:
        """Pause until a time. A pause never becomes shorter."""
        self.until_ms = max(self.until_ms, until_ms)

    def end(self) -> list[Session]:
        """End the pause; returns the sessions that waited, which may continue now."""
        self.until_ms = 0
        return self.release()

    def hold(self, session: Session) -> None:
        """Keep the input of a session until the pause ends."""
        self.held[session.number] = session

    def release(self) -> list[Session]:
        """The sessions that waited, which may continue now."""
        sessions = list(self.held.values())
        self.held = {}
        return sessions
