"""Replies with a list that may be long: its elements are collected in slices, and then sent in slices.

The number of elements comes first in a reply, so nothing can be sent before all are found.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from mypy_extensions import mypyc_attr

from disqued.core.clients.session import Session
from disqued.core.commands.longcommand import LongWork


@mypyc_attr(allow_interpreted_subclasses=True, acyclic=True)
class LongReply(LongWork):
    """A command that collects elements with `look` and `add`."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        """How many elements were found."""
        self._found: deque[Sequence[bytes]] = deque()
        """The elements, as they were added."""
        self._complete = False

    def add(self, count: int, parts: Sequence[bytes]) -> None:
        """Add elements, encoded in parts. Bodies of jobs should be parts of their own, so that they are not copied."""
        if count > 0:
            self.count += count
            self._found.append(parts)

    def look(self, state: Any, session: Session) -> bool:
        """Add some more elements; False when there are no more. `state` is the `NodeState`."""
        raise NotImplementedError

    def begin(self, session: Session) -> None:
        """Append the part of the reply that comes before the elements."""
        session.reply_array(self.count)

    def step(self, state: Any, session: Session) -> bool:
        """Collect some elements; when all are found, send some."""
        if not self._complete:
            if not self.look(state, session):
                self._complete = True
                self.begin(session)
            return True
        if self._found:
            session.out.extend(self._found.popleft())
        return bool(self._found)
