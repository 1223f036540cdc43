"""Asks this node and all others what becomes of the jobs that are watched here.

New questions leave at the end of the turn, up to 100 in a message, and each is repeated about every 30 s: the receiver
remembers it for 40 s. At a time only so many questions are asked that a hundred thousand of them hold up nothing else.
A node whose link has no room is asked as soon as it has.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.runtime.outbox import send
from disqued.core.runtime.parts import first_keys
from disqued.core.runtime.skipped import Skipped, has_no_room
from disqued.fates.payload import MOST_ASKED, pack_questions

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState

REPEAT_MS: Final = 30_000
JITTER_MS: Final = 3000
"""Questions are repeated up to so much earlier, by chance, so that nodes that begin together do not stay together."""
MOST_PER_TURN: Final = 200
"""Jobs that are asked about, or whose ends are passed on, in one turn of the event loop: clients wait for its end."""
MOST_REPEATED: Final = 1000
"""Jobs that are asked about again in one tick of the cron: 100,000 must be within the time that nodes remember them."""


class Asking:
    """The questions of one node."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self._repeats: deque[tuple[i64, bytes]] = deque()
        """When to ask again about which job, the earliest first, about."""
        self._skipped = Skipped(state)

    def ask_fresh(self) -> list[bytes]:
        """Ask about jobs that are watched since this turn; returns them."""
        fresh = self._state.watches.fresh
        asked: list[bytes] = []
        for job_id in first_keys(fresh, MOST_PER_TURN):
            del fresh[job_id]
            watched = self._state.lifecycle.watched.get(job_id)
            if watched is not None and watched.watchers:
                asked.append(job_id)
        self._ask(asked)
        return asked

    def repeat(self) -> list[bytes]:
        """Ask about jobs whose time has come; returns them."""
        repeats = self._repeats
        asked: list[bytes] = []
        while repeats and repeats[0][0] <= self._state.now_ms and len(asked) < MOST_REPEATED:
            _, job_id = repeats.popleft()
            watched = self._state.lifecycle.watched.get(job_id)
            if watched is not None:
                watched.is_scheduled = False
                if watched.watchers:
                    asked.append(job_id)
        self._ask(asked)
        return asked

    def ask_skipped(self) -> None:
        """Ask nodes whose links have room again."""
        watched = self._state.lifecycle.watched
        for peer, job_ids in self._skipped.ready():
            for frame in self._frames([job_id for job_id in job_ids if job_id in watched]):
                send(self._state, peer, frame)

    def _ask(self, job_ids: list[bytes]) -> None:
        if not job_ids:
            return
        state = self._state
        frames = self._frames(job_ids)
        for peer in state.view.reachable:
            if not peer.features & kinds.FEATURE_FATES:
                continue
            if has_no_room(peer):
                self._skipped.add(peer, job_ids)
                continue
            for frame in frames:
                send(state, peer, frame)
        at_ms: i64 = state.now_ms + REPEAT_MS - i64(int(state.host.random() * JITTER_MS))
        for job_id in job_ids:
            watched = state.lifecycle.watched.get(job_id)
            if watched is not None and not watched.is_scheduled:
                watched.is_scheduled = True
                self._repeats.append((at_ms, job_id))

    def _frames(self, job_ids: list[bytes]) -> list[bytes]:
        """The messages that ask about these jobs."""
        return [
            self._state.bus.other(kinds.JOBASK, pack_questions(job_ids[first : first + MOST_ASKED]))
            for first in range(0, len(job_ids), MOST_ASKED)
        ]
