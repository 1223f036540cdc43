"""Commands that take long run in slices, between which the node serves its other clients.

The client of a long command waits, as if it was blocked, and gets the reply of a command that runs at once. Requests of
other clients run between two slices, so the command may find that jobs have changed. If the client disconnects, most
commands end, and what was done stays done. `core.runtime.slices` runs them.
"""

from __future__ import annotations

from typing import Any, Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.clients.session import Blocked, Session
from disqued.core.commands.entry import CommandEntry

SHOWN_WORDS: Final = 64
"""SLOWLOG shows fewer words of a request."""


@mypyc_attr(allow_interpreted_subclasses=True, acyclic=True)
class LongWork:
    """The work of one command that runs in slices."""

    def __init__(self) -> None:
        self.runs_while_loading: bool = False
        self.ends_without_client: bool = False
        """Whether the work continues when the client disconnects."""

    def step(self, state: Any, session: Session) -> bool:
        """Do a part that takes well below a millisecond; False when the work is done and the reply is complete.

        `state` is the `NodeState`, which this package does not know. Each step may append output to the session.
        """
        raise NotImplementedError

    def waits(self) -> bool:
        """Whether the next step must wait for input, such as the end of disk work."""
        return False


@mypyc_attr(acyclic=True)
class LongCommand(Blocked):
    """A client whose command runs in slices."""

    def __init__(self, session: Session, work: LongWork) -> None:
        super().__init__(session)
        self.completes = True
        self.work = work
        self.entry: CommandEntry | None = None
        self.words: list[bytes] = []
        """The request. Of its words after the first SHOWN_WORDS, the work may drop those that it has processed."""
        self.spent_ns: i64 = 0
        """How long all slices took so far."""
