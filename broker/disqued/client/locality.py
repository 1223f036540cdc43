"""Decides to which node a consumer moves: to the one that its jobs come from.

A job whose consumer is at the node that created it needs no message between nodes before its delivery. The ID of a job
names its creator, so the consumer counts the creators of the jobs that it receives. When a window ends, it moves to the
creator of most of them. Jobs of several nodes in similar numbers move nobody, and a window bounds how often a consumer
moves.

The decision has no clock and no connection: callers pass the time, in seconds of any monotonic clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from disqued.client.values import Job

WINDOW_JOBS: Final = 100
WINDOW_S: Final = 2.0
"""A window ends when it has this many jobs and lasted this long."""

MOVE_SHARE: Final = 0.75
"""The share of the jobs of a window that one other node must have created."""

REFUSED_S: Final = 60.0
"""How long a node is left alone that could not be reached, or was suspected, leaving or unknown."""

DRAIN_S: Final = 1.0
"""How long after a move the former node is asked for jobs that it had already imported for this consumer."""


class Locality:
    """The creators of the jobs of the current window."""

    def __init__(self) -> None:
        self._created: Counter[str] = Counter()
        self._ends_s = 0.0
        self._refused_until_s: dict[str, float] = {}

    def fetched(self, jobs: Iterable[Job], node_id: str | None, now_s: float) -> str | None:
        """Count jobs that the node `node_id` delivered; return the creator to move to, None to stay.

        The creator is the first 8 hex digits of its node ID. A consumer that does not know its node stays.
        """
        if not self._created:
            self._ends_s = now_s + WINDOW_S
        self._created.update([job.id.creator_prefix for job in jobs])
        total = self._created.total()
        if total < WINDOW_JOBS or now_s < self._ends_s:
            return None
        [(creator, count)] = self._created.most_common(1)
        self._created.clear()
        if node_id is None or node_id.startswith(creator) or count < MOVE_SHARE * total:
            return None
        return creator if self._refused_until_s.get(creator, now_s) <= now_s else None

    def refused(self, creator: str, now_s: float) -> None:
        """Record that the consumer could not move to this node."""
        self._refused_until_s = {node: until_s for node, until_s in self._refused_until_s.items() if until_s > now_s}
        self._refused_until_s[creator] = now_s + REFUSED_S
