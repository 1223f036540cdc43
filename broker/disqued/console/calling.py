"""How the console asks the node: as a client that the server makes for it, since it knows of no connections itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from disqued.core.runtime.authentication import ONLY_USER
from disqued.resp.replies import Reply

Requests: TypeAlias = Sequence[Sequence[bytes]]
Then: TypeAlias = Callable[[list[Reply]], None]
Ask: TypeAlias = Callable[[Requests, Then], None]


class Caller(Protocol):
    """A client inside the process."""

    def authenticate(self, password: bytes, user: bytes = ONLY_USER) -> None:
        """What AUTH does; raises ReplyError."""

    def ask(self, requests: Requests, then: Then) -> None:
        """Have commands run, and `then` called with their replies, later; not if the connection ends before."""

    def close(self) -> None:
        """Ask no more."""


Callers: TypeAlias = Callable[[str, int, Callable[[str], None]], Caller]
"""Makes one: of the address of who asks, how many bytes of each string in a reply are kept, and who is told why when
the node hangs up."""
