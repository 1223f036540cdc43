"""Requests of one client that wait side by side, with their replies in the order of the requests.

A client that waits for the reply to an ADDJOB may have sent more of them. They start at once, so that the copies of all
these jobs are made at the same time, and each gets its reply when all requests before it have theirs. While only one
request waits, `Session.blocked` is that request. With more it is a `Pipeline`.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.clients.session import Blocked, Session

MOST_REQUESTS: Final = 1024
"""How many requests of one client may wait. Half of them must have a reply before more start."""
MOST_BYTES: Final = 1 << 20
"""The same for the size of what they wait for. The first request may be of any size."""


@mypyc_attr(acyclic=True)
class Pipelined(Blocked):
    """A request that other requests of its client may follow, or the reply to one that did not have to wait."""

    def __init__(self, session: Session, size: i64, reply: bytes | None = None) -> None:
        super().__init__(session)
        self.size: i64 = size
        """Bytes that are held until the reply, for example the body of a job."""
        self.reply = reply
        """None until the request has its reply."""
        self.following: Pipelined | None = None
        """The next request of the pipeline."""


@mypyc_attr(acyclic=True)
class Pipeline(Blocked):
    """The requests of a client whose replies were not sent yet. It ends when there are none."""

    def __init__(self, first: Pipelined) -> None:
        super().__init__(first.session)
        self.first: Pipelined | None = first
        self._last: Pipelined = first
        self.count: i64 = 1
        self.size: i64 = first.size
        self.open = first.open
        self.full: bool = False
        """Closed because there are too many requests; it opens again when there are fewer."""
        self.closes: bool = False
        """Close the connection after the last reply."""

    def add(self, request: Pipelined) -> None:
        """Add the next request of the client."""
        if self.first is None:
            self.first = request
        else:
            self._last.following = request
        self._last = request
        self.count += 1
        self.size += request.size
        self.open = self.open and request.open
        if self.open and (self.count >= MOST_REQUESTS or self.size >= MOST_BYTES):
            self.open = False
            self.full = True

    def pop_replies(self, out: list[bytes]) -> None:
        """Remove the requests that can be answered now, and append their replies to `out`."""
        request = self.first
        while request is not None:
            reply = request.reply
            if reply is None:
                break
            out.append(reply)
            self.count -= 1
            self.size -= request.size
            request = request.following
        self.first = request

    def reopen(self) -> bool:
        """Open a full pipeline that has become half empty."""
        if not self.full or 2 * self.count > MOST_REQUESTS or 2 * self.size > MOST_BYTES:
            return False
        self.full = False
        self.open = True
        return True


def pipeline_of(session: Session) -> Pipeline:
    """The pipeline of a client that waits for the reply to a `Pipelined` request."""
    blocked = session.blocked
    if isinstance(blocked, Pipeline):
        return blocked
    assert isinstance(blocked, Pipelined)
    pipeline = Pipeline(blocked)
    session.blocked = pipeline
    return pipeline


def waiting_requests(session: Session) -> i64:
    """How many requests of a client have no reply yet."""
    blocked = session.blocked
    if isinstance(blocked, Pipeline):
        return blocked.count
    return 0 if blocked is None else 1
