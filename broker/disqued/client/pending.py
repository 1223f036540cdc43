"""A call whose reply the program awaits together with other events: its socket is for a selector or an event loop.

```python
fetch = pending_fetch(client)
fetch.send(calls.get("mail", timeout_ms=10_000))
selector.register(fetch.fileno(), selectors.EVENT_READ)
...
jobs = fetch.receive()  # None: not complete yet
```

The call has a connection of its own, which stays with the node in use of the client. `interrupt` ends a blocked GETJOB
at once and loses no job: the connection is closed on this side only, the node then gives no more jobs, and those that
it had sent before are read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from disqued.client.blocking import Client
from disqued.client.calls import Call
from disqued.client.errors import ConnectionLost, DisqueError, Loading
from disqued.client.session import ONE_ATTEMPT, USE_ANOTHER, Session
from disqued.client.sockets import SocketLink
from disqued.client.transport import run_now
from disqued.client.values import Job

T = TypeVar("T")


def pending_fetch(client: Client) -> PendingCall[list[Job]]:
    """Return a fetch of jobs with a connection of its own."""
    return PendingCall(client._session)  # noqa: SLF001 - of this package


class PendingCall(Generic[T]):
    """One call at a time over a connection of its own. Only one thread may use it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._link: SocketLink | None = None
        self._call: Call[T] | None = None
        self.before_close: Callable[[int], object] | None = None
        """Called with the descriptor before it closes, so that nothing waits for it any more."""

    @property
    def is_pending(self) -> bool:
        """Whether a call was sent whose reply was not received."""
        return self._call is not None

    def fileno(self) -> int:
        """The descriptor to wait for; -1 without a connection."""
        return -1 if self._link is None else self._link.fileno()

    def send(self, call: Call[T]) -> None:
        """Send a call, over a new connection if there is none. The one before must have its reply.

        Raises:
            ConnectionFailed: no node can be reached.
            ConnectionLost: the connection broke; the node may have executed the call.
        """
        if self._call is not None:
            raise RuntimeError("a call is pending")
        link = self._link or self._connected()
        try:
            link.send(call.encode(), self._session.settings.timeout_s)
        except OSError as error:
            raise self._lost(call, link, error) from error
        self._call = call

    def _connected(self) -> SocketLink:
        link = run_now(self._session.open_link(ONE_ATTEMPT))
        if not isinstance(link, SocketLink):
            raise TypeError("only the blocking client has sockets that a selector can wait for")
        self._link = link
        return link

    def receive(self) -> T | None:
        """Return the result if the reply has arrived, otherwise None.

        Raises:
            ConnectionLost: the connection broke; the node may have executed the call.
            ResponseError: the node refused the call. If the node is leaving, the next call goes to another one.
        """
        call, link = self._call, self._link
        if call is None or link is None:
            return None
        try:
            answers = link.receive()
        except OSError as error:
            raise self._lost(call, link, error) from error
        if not answers:
            return None
        self._call = None
        [answer] = answers
        if isinstance(answer, USE_ANOTHER):
            self._release()
            self._session.leave_node(link)
        if isinstance(answer, Loading):
            self._release()
            self._session.link_failed(link)
        if isinstance(answer, DisqueError):
            raise answer
        return call.decode(answer)

    def interrupt(self) -> T | None:
        """End a pending call, and return its result if the node had replied. The connection is closed."""
        call = self._call
        link = self._release()
        if link is None:
            return None
        if call is None:
            link.close()
            return None
        answers = link.end(self._session.settings.timeout_s)
        return None if not answers or isinstance(answers[0], DisqueError) else call.decode(answers[0])

    def abandon(self) -> None:
        """Close the connection, which did not answer in time, and use another node. A result is lost."""
        link = self._release()
        if link is not None:
            self._session.link_failed(link)

    def close(self) -> None:
        """Close the connection and tell the node nothing; a result is lost."""
        link = self._release()
        if link is not None:
            link.close()

    def _release(self) -> SocketLink | None:
        """Return the connection, which is about to close, and forget it and its call."""
        link = self._link
        if link is not None and self.before_close is not None:
            self.before_close(link.fileno())
        self._call = self._link = None
        return link

    def _lost(self, call: Call[T], link: SocketLink, error: OSError) -> ConnectionLost:
        self._release()
        self._session.link_failed(link)
        return ConnectionLost(f"no reply to {call.name} from {link.address}: {str(error) or type(error).__name__}")
