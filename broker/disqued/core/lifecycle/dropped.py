"""Jobs, keys and queues that were dropped at once, and whose memory is freed in parts.

Freeing a million jobs takes most of a second: each must leave the timer wheel, and the links between jobs must be
cleared, because nothing else frees objects that refer to each other.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from disqued.core.jobs.job import Job
from disqued.core.lifecycle.events import Events
from disqued.core.lifecycle.keys import Remembered
from disqued.core.queues.queue import Queue
from disqued.core.timers.wheel import TimerWheel

_PART: Final = 200


@mypyc_attr(acyclic=True)
class Dropped:
    """What a node had when it dropped everything: the dicts of its tables."""

    def __init__(
        self,
        jobs: list[dict[bytes, Job]],
        keys: list[dict[bytes, Remembered]],
        names: list[dict[bytes, Queue]],
        queues: list[dict[int, Queue]],
    ) -> None:
        self._jobs = jobs
        self._keys = keys
        self._names = names
        """The queues by name."""
        self._queues = queues
        """The same queues by number."""

    def free_part(self, timers: TimerWheel, events: Events) -> bool:
        """Free some of it; False when nothing is left."""
        if self._jobs:
            jobs = self._jobs[-1]
            for _ in range(min(_PART, len(jobs))):
                job = jobs.popitem()[1]
                timers.disarm(job)
                job.queue_previous = None
                job.queue_next = None
            if not jobs:
                self._jobs.pop()
        elif self._keys:
            keys = self._keys[-1]
            for _ in range(min(_PART, len(keys))):
                timers.disarm(keys.popitem()[1])
            if not keys:
                self._keys.pop()
        elif self._names:
            names = self._names[-1]
            for _ in range(min(_PART, len(names))):
                names.popitem()
            if not names:
                self._names.pop()
        elif self._queues:
            queues = self._queues[-1]
            for _ in range(min(_PART, len(queues))):
                events.queue_gone(queues.popitem()[1])
            if not queues:
                self._queues.pop()
        return bool(self._jobs or self._keys or self._names or self._queues)
