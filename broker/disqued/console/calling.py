"""How the console runs commands: as clients that the server creates, because the console has no connections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from disqued.resp.replies import Reply

Requests: TypeAlias = Sequence[Sequence[bytes]]
Then: TypeAlias = Callable[[list[Reply]], None]
Ask: TypeAlias = Callable[[Requests, Then], None]
Cancel: TypeAlias = Callable[[], None]
AskMember: TypeAlias = Callable[[bytes, Requests, Then], "Cancel | None"]


class Calls(NamedTuple):
    """How the console runs commands for one request of the page, as the user of that request."""

    ask: Ask
    """On this node."""
    ask_member: AskMember
    """On another member, by its ID. Returns a function that cancels it; None if the member cannot be asked now."""


class Caller(Protocol):
    """A client in the server process."""

    def authenticate(self, password: bytes, user: bytes | None = None) -> None:
        """Authenticate, like AUTH. Raises ReplyError."""

    def ask(self, requests: Requests, then: Then) -> None:
        """Run commands and call `then` with their replies later, unless the connection ends before."""

    def ask_member(self, member: bytes, requests: Requests, then: Then) -> Cancel | None:
        """Have another member run commands for the user of this client, see `AskMember`."""

    @property
    def waits(self) -> bool:
        """Whether the node has a command of this client that waits, such as GETJOB, and whose reply has not begun."""

    def close(self) -> None:
        """Close the connection soon."""

    def abandon(self) -> None:
        """Close the connection now, so that a command that waits gets nothing. Not while the node runs."""


Callers: TypeAlias = Callable[[str, int, Callable[[str], None]], Caller]
"""Creates a caller. Arguments: the address of the client, the maximum length of strings in replies, and a callback that
gets the reason when the node closes the connection."""
