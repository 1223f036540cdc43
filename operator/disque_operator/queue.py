"""A queue of clusters with due times, processed by a limited number of concurrent workers.

Only one worker processes a key at a time. All wake-ups of a key that arrive while it waits or is processed lead to one
further round. Failed rounds are retried with exponential backoff, separately for each key.
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
"""Changes come in bursts: how long a round waits for more of them, in seconds."""
BACKOFF: Final = Backoff(first_s=1.0, longest_s=60.0)
SHORTEST_RETRY_S: Final = 5.0
"""How long a change after a failed round has to wait at most, in seconds."""


@dataclass
class _Entry:
    due_s: float
    started_s: float | None = None
    """When the running round started; None if none runs."""
    changed: bool = False
    """Whether the key was woken since the last round started."""
    failures: int = 0
    not_before_s: float = 0.0


class Queue:
    """Processes keys. `work` runs a round and returns the seconds until the next one, or None to forget the key.

    `work` must report its own exceptions.
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
        """Schedule a round, because something about the cluster changed."""
        now_s = self._clock()
        entry = self._entries.setdefault(key, _Entry(due_s=now_s + SETTLE_S))
        entry.changed = True
        if entry.started_s is None:
            entry.due_s = min(entry.due_s, max(now_s + SETTLE_S, entry.not_before_s))
        self._woken.set()

    @property
    def keys(self) -> list[Key]:
        """Return all known keys."""
        return list(self._entries)

    @property
    def waiting(self) -> int:
        """Return how many keys are due and wait for a worker."""
        now_s = self._clock()
        return sum(entry.started_s is None and entry.due_s <= now_s for entry in self._entries.values())

    def overdue_s(self) -> float:
        """Return how long the first due key has been waiting, in seconds."""
        now_s = self._clock()
        return max((now_s - entry.due_s for entry in self._entries.values() if entry.started_s is None), default=0.0)

    def running_s(self) -> float:
        """Return how long the oldest running round has been running, in seconds."""
        now_s = self._clock()
        return max(
            (now_s - entry.started_s for entry in self._entries.values() if entry.started_s is not None), default=0.0
        )

    async def run(self) -> None:
        """Process keys until cancelled. Running rounds are cancelled too, and their keys become due again."""
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
        """Wait until a key is due, a key is woken, or a round ends."""
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
        except Exception:  # noqa: BLE001 - `work` has reported it, and other keys must continue
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
