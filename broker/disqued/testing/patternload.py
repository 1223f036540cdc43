"""Clients of a calm simulated cluster that use queues nobody else knows: added with ADDTO, fetched by a pattern.

Each job is added on one node to a new queue, and a client that waits for the pattern on another node must get it soon.
Other clients draw from `World.chance` what they did before; these ones draw from `World.options`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.testing.workload import RECONNECT_MS, Caller

if TYPE_CHECKING:
    from disqued.testing.workload import Answer, World

LATE_MS: Final = 3000
"""How late the client may get a job of another node, without faults."""
_PAUSE_MS: Final = 400


class PatternClients:
    """One client that adds jobs, and one that takes them."""

    def __init__(self, world: World, producer: int, worker: int) -> None:
        self._world = world
        self._producer = Caller(world, producer)
        self._worker = Caller(world, worker)
        self._added = 0
        self._told_ms: dict[bytes, int] = {}
        """When the ID of each job was received."""
        self._taken: set[bytes] = set()

    def start(self) -> None:
        """Start to work."""
        self._world.later(self._world.options.random() * _PAUSE_MS, self._add)
        self._get()

    def _add(self) -> None:
        world = self._world
        if not world.producing:
            return
        world.later(100 + world.options.random() * _PAUSE_MS, self._add)
        if self._producer.connect():
            self._added += 1
            names = [f"group:{self._added}:{part}" for part in ("a", "b")]
            options = ("REPLICATE", 1, "RETRY", 0, "TTL", 20)
            self._producer.call(self._told, "ADDTO", 2, *names, f"group {self._added}", 1000, *options)

    def _told(self, answer: Answer) -> None:
        for job_id in answer if isinstance(answer, list) else ():
            if isinstance(job_id, bytes):
                self._told_ms[job_id] = self._world.now_ms

    def _get(self) -> None:
        if self._worker.connect():
            self._worker.call(self._got, "GETJOB", "TIMEOUT", 1500, "COUNT", 3, "FROMPATTERN", "group:*:[ab]")
        else:
            self._world.later(RECONNECT_MS, self._get)

    def _got(self, answer: Answer) -> None:
        world = self._world
        for job in answer if isinstance(answer, list) else ():
            assert isinstance(job, list)
            job_id = job[1]
            assert isinstance(job_id, bytes)
            self._taken.add(job_id)
            late_ms = world.now_ms - self._told_ms.get(job_id, world.now_ms)
            if late_ms > LATE_MS:
                world.history.violate(world.now_ms, f"{job_id!r} reached the client of a pattern after {late_ms} ms")
            self._worker.call(lambda _: None, "ACKJOB", job_id)
        world.history.rare["job delivered to a pattern"] += isinstance(answer, list)
        world.later(1, self._get)

    def check_end(self) -> None:
        """Check that the client got all jobs."""
        world = self._world
        for job_id, told_ms in self._told_ms.items():
            if job_id not in self._taken:
                world.history.violate(world.now_ms, f"{job_id!r}, added at {told_ms}, reached no client of a pattern")
