"""Redriving the dead letters of the failing clients after healing: REDRIVE with a rate, and CANCEL on the way.

The failing clients found their dead letters complete. Now a client has them moved back to the queues that they come
from, at some nodes, and workers finish them there: each of them once, and none stays a dead letter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final

from disqued.core.jobs.attributes import ORIGIN_QUEUE
from disqued.testing.workload import Caller

if TYPE_CHECKING:
    from disqued.core.jobs.job import Job
    from disqued.testing.workload import Answer, World

SHARE: Final = 0.7
"""The part of the runs with failing jobs that redrive them."""
RATE: Final = 5
"""Jobs per second. Few, so that a task lasts long enough to be cancelled."""
STILL_MS: Final = 1500
"""How long after a task was cancelled nothing moves any more: moves that had begun are over."""
MOST_MS: Final = 90_000
"""How long all dead letters may take to return."""
_AGAIN_MS: Final = 10_000
"""When REDRIVE is sent again, to the next node: a job is not moved while another move or a lease of it is under way,
and not if the clock of the node that created it is ahead of those of the nodes that have the task and the job."""


@dataclass(eq=False)
class Letter:
    """A dead letter that returns."""

    origins: set[str]
    """More than one if the job was moved on two sides of a partition."""
    lasting: bool
    """Delivered at least once, and queued."""
    deliveries: list[tuple[int, str]] = field(default_factory=list)
    """When and from which queue it was delivered."""


class Redriver:
    """A client that redrives dead letters and counts how often each is delivered then."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._chance = Random(f"redrives {seed}")  # noqa: S311 - repeatable chance is the point
        self.wanted = self._chance.random() < SHARE
        """Whether this run redrives."""
        self._cancels = self._chance.random() < 0.5
        self._letters: dict[bytes, Letter] = {}
        """By body."""
        self._queues: tuple[str, ...] = ()
        self._began_ms = 0
        self._sent_ms = 0
        self._home = self._chance.randint(1, len(world.cluster.members))
        """The member that gets the next command, if it can be reached."""
        self._still: set[bytes] | None = None
        """The dead letters that were left when the task was cancelled."""
        self._still_ms = 0
        self.done = False

    @property
    def active(self) -> bool:
        """Whether workers finish what they get."""
        return self._began_ms > 0

    def begin(self, jobs: list[Job], queues: tuple[str, ...]) -> None:
        """Redrive the dead letters that the nodes have, of which some are copies."""
        for job in jobs:
            origin = None if job.extra is None else job.extra.get(ORIGIN_QUEUE)
            assert origin is not None
            letter = self._letters.setdefault(job.body, Letter(set(), job.retry_s > 0))
            letter.origins.add(origin.decode())
        self._queues = queues
        self._began_ms = self._world.now_ms
        self._send("REDRIVE", "RATE", RATE)

    def _send(self, command: str, *options: str | int) -> None:
        """Send a command about each queue to some node."""
        self._sent_ms = self._world.now_ms
        self._home = self._home % len(self._world.cluster.members) + 1
        for queue in self._queues:
            Caller(self._world, self._home, self._chance).call(self._answered, command, queue, *options)

    def _answered(self, answer: Answer) -> None:
        self._world.history.rare["REDRIVE started"] += answer == b"started"
        self._world.history.rare["REDRIVE cancelled"] += answer == b"OK"

    def delivered(self, body: bytes, queue: str) -> None:
        """A worker gets one of the jobs."""
        letter = self._letters.get(body)
        if letter is not None and self.active:
            letter.deliveries.append((self._world.now_ms, queue))

    def look(self, left: list[Job], returned: int) -> None:
        """Cancel the task, start it again, and check in the end.

        `left` are the dead letters on all nodes, and so many jobs have `returned` and are not finished.
        """
        now_ms = self._world.now_ms
        waiting = {job.body for job in left if self._letters[job.body].lasting}
        if self._cancels:
            self._cancels = False
            self._still_ms = now_ms + STILL_MS
            self._send("REDRIVE", "CANCEL")
        elif self._still_ms > 0:
            self._look_whether_still(waiting)
        elif not waiting and returned == 0:
            self.done = True
            self._check()
        elif now_ms - self._began_ms > MOST_MS:
            self.done = True
            self._violate(f"dead letters do not return or are not delivered: {sorted(waiting)}, {returned} others")
        elif now_ms - self._sent_ms > _AGAIN_MS:
            self._send("REDRIVE", "RATE", RATE)

    def _look_whether_still(self, waiting: set[bytes]) -> None:
        now_ms = self._world.now_ms
        if now_ms < self._still_ms:
            return
        if self._still is None:
            self._still = waiting
            self._still_ms = now_ms + STILL_MS
            return
        self._world.history.rare["dead letter stayed after CANCEL"] += bool(waiting)
        if waiting != self._still:
            self._violate(f"{min(self._still - waiting)!r} was redriven after REDRIVE was cancelled")
        self._still_ms = 0
        self._send("REDRIVE", "RATE", RATE)

    def _check(self) -> None:
        """Check where each job was delivered."""
        faulty = self._world.history.faulty
        for body, letter in self._letters.items():
            queues = [queue for _, queue in letter.deliveries]
            if letter.lasting and not queues:
                self._violate(f"{body!r} was redriven and not delivered")
            elif not letter.origins.issuperset(queues):
                self._violate(f"{body!r} was redriven to {queues} instead of {letter.origins}")
            elif len(queues) > len(letter.origins) and not faulty:
                self._violate(f"{body!r} was redriven once and delivered {letter.deliveries}")

    def _violate(self, text: str) -> None:
        self._world.history.violate(self._world.now_ms, text)
