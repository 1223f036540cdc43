"""The buckets of one node: of the queues whose rate home it is."""

from __future__ import annotations

from typing import Final

from disqued.core.runtime.state import NodeState
from disqued.rates.bucket import Bucket
from disqued.rates.homes import Homes

BUCKET_BYTES: Final = 1000
"""What a bucket takes in memory, about."""
_VISITED: Final = 200
"""How many buckets are looked at in one visit, for those that are not needed any more."""


class Buckets:
    """The buckets by the name of their queue."""

    def __init__(self, state: NodeState, homes: Homes) -> None:
        self._state = state
        self._homes = homes
        self._known: dict[bytes, Bucket] = {}

    def __len__(self) -> int:
        """How many there are."""
        return len(self._known)

    def get(self, name: bytes) -> Bucket | None:
        """The bucket of a queue with limits whose home this node is; None for any other queue."""
        settings = self._state.lifecycle.queues.settings_of(name)
        if settings is None or not settings.limited or self._homes.home_of(name) != self._state.view.node_id:
            self._end(name)
            return None
        bucket = self._known.get(name)
        if bucket is None:
            bucket = Bucket(self._state, self._homes, name, settings)
            self._known[name] = bucket
        return bucket

    def follow_homes(self) -> None:
        """End the buckets of queues that have another home now."""
        own = self._state.view.node_id
        for name in list(self._known):
            if self._homes.home_of(name) != own:
                self._end(name)

    def visit(self) -> None:
        """End some of those that are not needed; the others are looked at later."""
        for name in list(self._known)[:_VISITED]:
            bucket = self._known.pop(name)
            self._known[name] = bucket
            if bucket.is_idle:
                self._end(name)

    def _end(self, name: bytes) -> None:
        bucket = self._known.pop(name, None)
        if bucket is not None:
            bucket.ended = True
            self._state.lifecycle.timers.disarm(bucket)
