"""Standing copies under faults: a client adds jobs to a queue whose setting `copy-to` names two others.

The copies are jobs of their own with the same body. The node that takes the job places them, so they are there as long
as that node keeps its jobs. Not all seeds have them, so that the others repeat runs from before.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final

from disqued.testing.workload import RECONNECT_MS, Caller

if TYPE_CHECKING:
    from disqued.testing.cluster import Member
    from disqued.testing.local import Reply
    from disqued.testing.workload import Answer, World

SHARE: Final = 0.2
"""The part of the seeds that have copies."""
QUEUE: Final = "copied"
TARGETS: Final = ("copy:a", "copy:b")
_PAUSE_MS: Final = 700
_RETRY_S: Final = 5


def has_copies(seed: int) -> bool:
    """Whether the runs of a seed have standing copies."""
    return Random(f"has copies {seed}").random() < SHARE  # noqa: S311 - repeatable chance is the point


@dataclass(eq=False)
class Original:
    """A job that was added to the queue."""

    number: int
    at_ms: int
    member: Member
    losses: int
    """How often the node that took it had lost its memory before."""
    copied: bool | None
    """Whether that node had the setting; None if that is not known."""
    told_ms: int = 0
    found: dict[str, Counter[bytes]] = field(default_factory=dict)
    """How often each job with its body was delivered, by queue and ID."""


class CopyClients:
    """A client that adds jobs, and workers on all nodes that finish them and their copies."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._chance = Random(f"jobs to copy {seed}")  # noqa: S311 - repeatable chance is the point
        count = len(world.cluster.members)
        self._adder = Caller(world, self._chance.randint(1, count), self._chance)
        self._workers = [Caller(world, home, self._chance) for home in range(1, count + 1)]
        self._jobs: list[Original] = []
        self._configured = False

    def start(self) -> None:
        """Start to work."""
        self._configure()
        self._world.later(300 + self._chance.random() * _PAUSE_MS, self._add)
        for worker in self._workers:
            self._get(worker)

    def _configure(self) -> None:
        """Set the setting on some node, until one says that it did."""
        if not self._configured:
            self._adder.call(self._set, "QCONF", QUEUE, "SET", "copy-to", " ".join(TARGETS))

    def _set(self, answer: Answer) -> None:
        self._configured = answer == b"OK"
        if not self._configured:
            self._world.later(RECONNECT_MS, self._configure)

    def _add(self) -> None:
        world = self._world
        chance = self._chance
        if not world.producing:
            return
        world.later(100 + chance.random() * _PAUSE_MS, self._add)
        member = self._adder.member if self._adder.connect() else None
        if member is None:
            return
        number = len(self._jobs)
        original = Original(number, world.now_ms, member, world.history.losses(member.number), _copies(member))
        self._jobs.append(original)
        options = ("REPLICATE", chance.choice((1, 2)), "RETRY", _RETRY_S, "TTL", 3600)
        self._adder.call(
            lambda _: None,
            *("ADDJOB", QUEUE, b"copy %d" % number, 1000, *options),
            on_sent=lambda reply: self._told(original, reply),
        )

    def _told(self, original: Original, reply: Reply) -> None:
        """Note that the node took the job; whether it had the setting is known if that has not changed since."""
        if isinstance(reply, bytes):
            original.told_ms = self._world.now_ms
        if original.copied != _copies(original.member):
            original.copied = None

    def _get(self, worker: Caller) -> None:
        worker.call(
            lambda answer: self._got(worker, answer),
            *("GETJOB", "TIMEOUT", 1500, "COUNT", 4, "FROM", QUEUE, *TARGETS),
            on_sent=self._delivered,
        )

    def _delivered(self, reply: Reply) -> None:
        for row in reply if isinstance(reply, list) else ():
            assert isinstance(row, list)
            queue, job_id, body = row[:3]
            assert isinstance(queue, bytes)
            assert isinstance(job_id, bytes)
            assert isinstance(body, bytes)
            original = self._jobs[int(body.split()[1])]
            original.found.setdefault(queue.decode(), Counter())[job_id] += 1
            self._world.history.rare["standing copy delivered"] += queue.decode() in TARGETS

    def _got(self, worker: Caller, answer: Answer) -> None:
        for row in answer if isinstance(answer, list) else ():
            assert isinstance(row, list)
            assert isinstance(row[1], bytes)
            worker.call(lambda _: None, "ACKJOB", row[1])
        self._world.later(1 if isinstance(answer, list) else RECONNECT_MS, lambda: self._get(worker))

    def check_end(self) -> None:
        """Check that each job has the copies that the setting wants."""
        for original in self._jobs:
            for queue in TARGETS:
                why = self._fault(original, original.found.get(queue, Counter()))
                if why:
                    text = f"copy {original.number}, added at {original.told_ms} by {original.member.number}: {why}"
                    self._world.history.violate(self._world.now_ms, f"{text} in {queue}")

    def _fault(self, original: Original, found: Counter[bytes]) -> str:
        """What is wrong with the copies of a job in one queue."""
        history = self._world.history
        if len(found) > 1:
            return f"{len(found)} copies are"
        if found and original.copied is False:
            return "a copy that no setting wants is"
        if found.total() > 1 and not history.faulty and history.distance_ms == 0:
            return f"a copy was delivered {found.total()} times"
        kept = (
            history.losses(original.member.number) == original.losses
            and not history.is_set_back(original.member.number, original.at_ms, original.told_ms)
            and not history.owners_change
        )
        if not found and original.copied and original.told_ms and kept:
            return "no copy is"
        return ""


def _copies(member: Member) -> bool:
    """Whether a node has the setting."""
    settings = member.node.state.lifecycle.queues.settings_of(QUEUE.encode())
    return settings is not None and len(settings.copy_to) > 0
