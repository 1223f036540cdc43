"""Requests of one client that wait side by side, with their replies in the order of the requests.

A client that waits for the reply to an ADDJOB may have sent more of them. They start at once, so that the copies of all
these jobs are made at the same time, and each gets its reply when all requests before it have theirs. While only one
request waits, `Session.blocked` is that request. With more it is a `Pipeline`.
"""

from __future__ import annotations

from collections import deque
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


@mypyc_attr(acyclic=True)
class Pipeline(Blocked):
    """The requests of a client whose replies were not sent yet. It ends when there are none."""

    def __init__(self, first: Pipelined) -> None:
        super().__init__(first.session)
        self.requests: deque[Pipelined] = deque((first,))
        self.size: i64 = first.size
        self.open = first.open
        self.full: bool = False
        """Closed because there are too many requests; it opens again when there are fewer."""
        self.closes: bool = False
        """Close the connection after the last reply."""

    def add(self, request: Pipelined) -> None:
        """Add the next request of the client."""
        self.requests.append(request)
        self.size += request.size
        self.open = self.open and request.open
        if self.open and (len(self.requests) >= MOST_REQUESTS or self.size >= MOST_BYTES):
            self.open = False
            self.full = True

    def pop_replies(self, out: list[bytes]) -> None:
        """Remove the requests that can be answered now, and append their replies to `out`."""
        requests = self.requests
        while requests:
            request = requests[0]
            reply = request.reply
            if reply is None:
                break
            requests.popleft()
            self.size -= request.size
            out.append(reply)

    def reopen(self) -> bool:
        """Open a full pipeline that has become half empty."""
        if not self.full or 2 * len(self.requests) > MOST_REQUESTS or 2 * self.size > MOST_BYTES:
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
        return len(blocked.requests)
    return 0 if blocked is None else 1
