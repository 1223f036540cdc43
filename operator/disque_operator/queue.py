"""Which clusters are to be looked at, and when: keys with times, worked on by so many tasks at once.

A key is worked on by one task at a time. Whatever wakes it while it waits or is being worked on leads to one more
round, not to one for each; a round that fails is followed by another one later and later, in its own time.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from disqued.client import Backoff

Key: TypeAlias = tuple[str, str]
"""Namespace and name of a cluster."""

SETTLE_S: Final = 0.3
"""Changes come in crowds: a round waits so long for the rest of them."""
BACKOFF: Final = Backoff(first_s=1.0, longest_s=60.0)
SHORTEST_RETRY_S: Final = 5.0
"""At most so long does a failed round keep a change waiting."""


@dataclass
class _Entry:
    due_s: float
    started_s: float | None = None
    """When the round began that runs now."""
    changed: bool = False
    """Something happened since it began."""
    failures: int = 0
    not_before_s: float = 0.0


class Queue:
    """`work` does a round for a key and says after how many seconds the next one is due; None forgets the key.

    When it raises, it has told of that already.
    """

    def __init__(
        self,
        work: Callable[[Key], Awaitable[float | None]],
        *,
        workers: int,
        rng: random.Random,
        clock: Callable[[], float],
    ) -> None:
        self._work = work
        self._workers = workers
        self._rng = rng
        self._clock = clock
        self._entries: dict[Key, _Entry] = {}
        self._woken = asyncio.Event()

    def wake(self, key: Key) -> None:
        """Something about the cluster changed."""
        now_s = self._clock()
        entry = self._entries.setdefault(key, _Entry(due_s=now_s + SETTLE_S))
        entry.changed = True
        if entry.started_s is None:
            entry.due_s = min(entry.due_s, max(now_s + SETTLE_S, entry.not_before_s))
        self._woken.set()

    @property
    def keys(self) -> list[Key]:
        """All clusters known."""
        return list(self._entries)

    @property
    def waiting(self) -> int:
        """Rounds that are due and wait for a free worker."""
        now_s = self._clock()
        return sum(entry.started_s is None and entry.due_s <= now_s for entry in self._entries.values())

    def overdue_s(self) -> float:
        """How long the oldest of these has been waiting."""
        now_s = self._clock()
        return max((now_s - entry.due_s for entry in self._entries.values() if entry.started_s is None), default=0.0)

    def running_s(self) -> float:
        """How long the oldest round that runs has been running."""
        now_s = self._clock()
        return max(
            (now_s - entry.started_s for entry in self._entries.values() if entry.started_s is not None), default=0.0
        )

    async def run(self) -> None:
        """Work until cancelled; rounds that run then are cancelled too, and their keys are due again."""
        rounds: set[asyncio.Task[None]] = set()

        def ended(task: asyncio.Task[None]) -> None:
            rounds.discard(task)
            self._woken.set()

        try:
            while True:
                self._woken.clear()
                for key in self._ready(self._workers - len(rounds)):
                    task = asyncio.create_task(self._round(key), name="/".join(key))
                    rounds.add(task)
                    task.add_done_callback(ended)
                await self._sleep(idle=len(rounds) < self._workers)
        finally:
            cancelled = list(rounds)
            for task in cancelled:
                task.cancel()
            await asyncio.gather(*cancelled, return_exceptions=True)

    def _ready(self, free: int) -> list[Key]:
        now_s = self._clock()
        due = [(entry.due_s, key) for key, entry in self._entries.items() if entry.started_s is None]
        ready = [key for due_s, key in sorted(due) if due_s <= now_s][:free]
        for key in ready:
            self._entries[key].started_s = now_s
        return ready

    async def _sleep(self, *, idle: bool) -> None:
        """Until a key is due, or something happens: a wake, the end of a round."""
        now_s = self._clock()
        due = [entry.due_s - now_s for entry in self._entries.values() if entry.started_s is None] if idle else []
        try:
            async with asyncio.timeout(max(0.0, min(due)) if due else None):
                await self._woken.wait()
        except TimeoutError:
            pass

    async def _round(self, key: Key) -> None:
        entry = self._entries[key]
        entry.changed = False
        again_s: float | None = 0.0
        try:
            again_s = await self._work(key)
            entry.failures, entry.not_before_s = 0, 0.0
        except Exception:  # noqa: BLE001 - whatever it is: `work` told of it, and the others go on
            again_s = BACKOFF.wait_s(entry.failures, self._rng)
            entry.failures += 1
            entry.not_before_s = self._clock() + min(again_s, SHORTEST_RETRY_S)
        finally:
            self._end(key, entry, again_s)

    def _end(self, key: Key, entry: _Entry, again_s: float | None) -> None:
        now_s = self._clock()
        entry.started_s = None
        if again_s is None and not entry.changed:
            del self._entries[key]
            return
        entry.due_s = now_s + (again_s if again_s is not None else SETTLE_S)
        if entry.changed:
            entry.due_s = min(entry.due_s, max(now_s + SETTLE_S, entry.not_before_s))
