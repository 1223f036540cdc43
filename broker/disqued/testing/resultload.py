"""Clients of a simulated cluster that wait for jobs and read their results at other nodes.

Each job is added with RETAIN on one node, acknowledged with a result on another one, and a client of a third node waits
for it. A result that is read must be one that was written for this job, and a job must not read as done before its
acknowledgement was sent. Without faults, the waiting client is served soon. They draw from a chance of their own.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final

from disqued.testing.workload import RECONNECT_MS, Caller

if TYPE_CHECKING:
    from disqued.testing.workload import Answer, World

QUEUE: Final = "results"
LATE_MS: Final = 2000
"""How long after the acknowledgement the client may wait, without faults."""
_PAUSE_MS: Final = 500
_WAIT_MS: Final = 3500
_LATER_MS: Final = 1500
"""When the result is read once more: all holders have forgotten the job."""


class ResultClients:
    """One client that adds jobs and waits for them elsewhere, and one that works."""

    def __init__(self, world: World, seed: int, producer: int, worker: int, waiter: int) -> None:
        self._world = world
        self._chance = Random(f"results {seed}")  # noqa: S311 - repeatable chance is the point
        self._producer = Caller(world, producer, self._chance)
        self._worker = Caller(world, worker, self._chance)
        self._waiter = Caller(world, waiter, self._chance)
        self._reader = Caller(world, waiter, self._chance)
        self._written: dict[bytes, bytes] = {}
        """The result with which each job was acknowledged, by ID."""
        self._acked_ms: dict[bytes, int] = {}
        self._current: bytes | None = None

    def start(self) -> None:
        """Start to work."""
        self._world.later(self._chance.random() * _PAUSE_MS, self._add)
        self._get()

    def _add(self) -> None:
        world = self._world
        if not world.producing:
            return
        if self._producer.connect():
            self._producer.call(self._added, "ADDJOB", QUEUE, "body", 1000, "REPLICATE", 2, "RETRY", 60, "RETAIN", 60)
        else:
            world.later(RECONNECT_MS, self._add)

    def _added(self, answer: Answer) -> None:
        if isinstance(answer, bytes) and self._waiter.connect():
            self._current = answer
            self._waiter.call(self._waited, "WAITJOB", answer, "WITHRESULT", "TIMEOUT", _WAIT_MS)
        else:
            self._world.later(RECONNECT_MS, self._add)

    def _get(self) -> None:
        if self._worker.connect():
            self._worker.call(self._got, "GETJOB", "TIMEOUT", 1500, "FROM", QUEUE)
        else:
            self._world.later(RECONNECT_MS, self._get)

    def _got(self, answer: Answer) -> None:
        world = self._world
        for job in answer if isinstance(answer, list) else ():
            assert isinstance(job, list)
            job_id = job[1]
            assert isinstance(job_id, bytes)
            world.later(200 + self._chance.random() * _PAUSE_MS, partial(self._ack, job_id))
            return
        world.later(1, self._get)

    def _ack(self, job_id: bytes) -> None:
        """Acknowledge a job while the client waits for it."""
        world = self._world
        world.later(1, self._get)
        if self._worker.connect():
            result = self._written.setdefault(job_id, b"result of " + job_id)
            self._acked_ms.setdefault(job_id, world.now_ms)
            self._worker.call(lambda _: None, "ACKJOB", job_id, "RESULT", result)

    def _waited(self, answer: Answer) -> None:
        world = self._world
        job_id = self._current
        world.later(self._chance.random() * _PAUSE_MS, self._add)
        if job_id is None:
            return
        if answer is None and world.now_ms - self._acked_ms.get(job_id, world.now_ms) > LATE_MS:
            world.history.violate(world.now_ms, f"{job_id!r} has ended, and the client that waits for it is not told")
        if not isinstance(answer, list):
            return
        for row in answer:
            self._check(job_id, row)
        world.later(_LATER_MS, partial(self._ask, job_id))

    def _ask(self, job_id: bytes) -> None:
        """Read the result once more, when the job is forgotten."""
        if self._reader.connect():
            self._reader.call(partial(self._asked, job_id), "RESULT", job_id)

    def _asked(self, job_id: bytes, answer: Answer) -> None:
        world = self._world
        if answer is not None and not isinstance(answer, list):
            return
        if answer is None or answer[0] != b"done" or answer[3] != self._written[job_id]:
            world.history.violate(world.now_ms, f"{job_id!r} was done, and RESULT says {answer!r}")
        else:
            world.history.rare["result read after its job was forgotten"] += 1

    def _check(self, job_id: bytes, row: Answer) -> None:
        world = self._world
        assert isinstance(row, list)
        named, outcome, result = row
        written = self._written.get(job_id)
        if named != job_id or outcome != b"done" or written is None:
            world.history.violate(world.now_ms, f"{job_id!r} reads as {outcome!r}, acknowledged: {written is not None}")
        elif result != written:
            world.history.violate(world.now_ms, f"{job_id!r} has the result {result!r} instead of {written!r}")
        elif world.now_ms - self._acked_ms[job_id] > LATE_MS:
            world.history.violate(world.now_ms, f"{job_id!r} was waited for too long")
        else:
            world.history.rare["result read at another node"] += 1
