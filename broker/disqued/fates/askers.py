"""The other nodes that want to be told what becomes of jobs: each for 40 s after it asked."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.fates.counters import WATCHES_REFUSED

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState

REMEMBERED_MS: Final = 40_000
MOST_REMEMBERED: Final = 100_000
_MOST_PER_VISIT: Final = 2000


class Askers:
    """Which node asked about which job."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self._ends: deque[tuple[i64, bytes, bytes]] = deque()
        """When a question may be over, its job and its node; the earliest first."""
        self.most = MOST_REMEMBERED
        self.count = 0
        """How many questions are remembered."""

    def remember(self, job_id: bytes, node_id: bytes) -> None:
        """Remember that a node asked about a job, if there is room for that."""
        state = self._state
        watched = state.lifecycle.watched.get(job_id)
        known = watched is not None and node_id in watched.askers
        if not known:
            if self.count >= self.most:
                state.counters.add(WATCHES_REFUSED)
                return
            self.count += 1
        until_ms: i64 = state.now_ms + REMEMBERED_MS
        state.watches.of(job_id).askers[node_id] = until_ms
        self._ends.append((until_ms, job_id, node_id))

    def forget_old(self) -> None:
        """Forget some questions whose time is over."""
        state = self._state
        ends = self._ends
        for _ in range(_MOST_PER_VISIT):
            if not ends or ends[0][0] > state.now_ms:
                return
            _, job_id, node_id = ends.popleft()
            watched = state.lifecycle.watched.get(job_id)
            if watched is not None and watched.askers.get(node_id, state.now_ms + 1) <= state.now_ms:
                del watched.askers[node_id]
                self.count -= 1
                state.watches.forget_if_over(job_id)
