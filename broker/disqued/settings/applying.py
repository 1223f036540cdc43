"""Makes the queues follow changed settings: a queue that is named at once, those that match a pattern in slices.

A node may have 100,000 queues, so a change for a pattern visits them a few per turn, in the order in which they were
made. A change during a visit starts another one after it. Queues that are made meanwhile follow the settings anyway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.lifecycle.pausing import follow_settings
from disqued.core.queues.settingsindex import is_pattern

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState

_QUEUES_PER_SLICE: Final = 500


class Applying:
    """Visits the queues of one node."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self._cursor = 0
        self._again = False
        self.active = False
        """Whether queues remain to be visited."""

    def changed(self, name: bytes) -> None:
        """The settings of a name or pattern changed."""
        if not is_pattern(name):
            lifecycle = self._state.lifecycle
            queue = lifecycle.queues.get(name)
            if queue is not None:
                follow_settings(lifecycle, queue, self._state.now_ms)
        elif self.active and self._cursor:
            self._again = True
        else:
            self.active = True

    def proceed(self) -> None:
        """Visit the next queues."""
        if not self.active:
            return
        lifecycle = self._state.lifecycle
        self._cursor, queues = lifecycle.queues.scan(self._cursor, _QUEUES_PER_SLICE)
        for queue in queues:
            follow_settings(lifecycle, queue, self._state.now_ms)
        if self._cursor == 0:
            self.active, self._again = self._again, False
