"""Clients of a simulated cluster whose jobs fail: poison jobs among good ones, which become dead letters.

They use queues that no other client knows, in a part of the seeds, so that the others repeat runs from before. After
healing, all poison jobs must become dead letters, each exactly one; then these are acknowledged.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from disqued.core.jobs.attributes import ATTEMPTS, META, ORIGIN_ID
from disqued.core.jobs.job import ACKED, ACTIVE, QUEUED, Job
from disqued.moves.successor import successor_id
from disqued.testing.checkers import TIE_MS
from disqued.testing.redriveload import Redriver
from disqued.testing.workload import RECONNECT_MS, Caller

if TYPE_CHECKING:
    from disqued.testing.cluster import Member
    from disqued.testing.local import Reply
    from disqued.testing.workload import Answer, World

SHARE: Final = 0.3
"""The part of the seeds that have failing jobs."""
LIMIT: Final = 3
_PATTERN: Final = "bad*"
_QUEUES: Final = ("bad", "bad2")
_DEAD: Final = ("bad.dead", "bad2.dead")
"""Where dead letters go without a setting: a node that lost its disk has none until others send them."""
_PAUSE_MS: Final = 500
_BACKOFF_MS: Final = (200, 1500)
DELAY_S: Final = 4
"""Longer than the retry time, so that holders that do not know of the delay would queue the job early."""
REUNITED_MS: Final = 5000
"""How long two nodes that reach each other again may both have the same dead letter queued."""
EARLY_MS: Final = 30
"""How early a job may come back after NACK DELAY by the clock of the checker: clocks tick every 16 ms."""


def has_failures(seed: int) -> bool:
    """Whether the runs of a seed have failing jobs."""
    return Random(f"failing {seed}").random() < SHARE  # noqa: S311 - repeatable chance is the point


@dataclass(eq=False)
class Failing:
    """A job of these clients. Its number is in the body."""

    number: int
    retry_s: int
    replicate: int
    losses_before: int
    """How often nodes had lost their memory before it was added."""
    job_id: bytes = b""
    deliveries: int = 0
    delivered_ms: int = 0
    """When it was last delivered."""
    not_before_ms: int = 0
    """A job that was given back for later must not be delivered before this time."""
    moved: bool = False
    """Whether a client asked to move it."""
    rejected: bool = False
    """Whether a worker sent NACK DEAD."""

    @property
    def body(self) -> bytes:
        """Identifies it."""
        return b"bad %d" % self.number

    @property
    def meta(self) -> bytes:
        """Its metadata."""
        return b"meta of bad %d" % self.number

    @property
    def is_poison(self) -> bool:
        """Whether all its attempts fail."""
        return self.number % 3 != 0

    @property
    def may_be_moved(self) -> bool:
        """Whether a client may move it to the other queue, so that it may have more than one successor."""
        return self.number % 4 == 1


class FailingClients:
    """A producer, workers on some nodes, and a client that moves jobs."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._chance = Random(f"failing jobs {seed}")  # noqa: S311 - repeatable chance is the point
        count = len(world.cluster.members)
        self._producer = Caller(world, self._chance.randint(1, count))
        self._mover = Caller(world, self._chance.randint(1, count))
        self._workers = [Caller(world, home) for home in range(1, count + 1)]
        self.jobs: list[Failing] = []
        self._configured = False
        self._redriver = Redriver(world, seed)
        self._buries = False
        """Whether the checks are done and everything is acknowledged."""
        self.checked = False
        self._whole_ms = 0
        """Since when all nodes reach each other; 0 if they do not."""

    def start(self) -> None:
        """Start to work."""
        self._configure()
        self._world.later(100 + self._chance.random() * _PAUSE_MS, self._add)
        self._world.later(1000, self._move)
        for worker in self._workers:
            self._get(worker)

    def _configure(self) -> None:
        """Set the settings of the queues, on any node, until one says that it did."""
        if not self._configured and self._producer.connect():
            least, most = _BACKOFF_MS
            settings = ("limit", LIMIT, "dead-ttl", 150, "backoff", f"{least} {most}")
            self._producer.call(self._set, "QCONF", _PATTERN, "SET", *settings)
        elif not self._configured:
            self._world.later(RECONNECT_MS, self._configure)

    def _set(self, answer: Answer) -> None:
        self._configured = answer == b"OK"
        if not self._configured:
            self._world.later(RECONNECT_MS, self._configure)

    def _add(self) -> None:
        world = self._world
        if not world.producing:
            return
        world.later(100 + self._chance.random() * _PAUSE_MS, self._add)
        if not self._producer.connect():
            return
        chance = self._chance
        replicate = chance.choice((1, 2, 3))
        retry_s = chance.choice((0, 2)) if replicate == 1 else 2
        job = Failing(len(self.jobs), retry_s, replicate, world.history.all_losses)
        self.jobs.append(job)
        options = ("REPLICATE", replicate, "RETRY", retry_s, "TTL", 3600 if retry_s else 20, "META", job.meta)
        self._producer.call(lambda answer: self._added(job, answer), "ADDJOB", _QUEUES[0], job.body, 1000, *options)

    def _added(self, job: Failing, answer: Answer) -> None:
        if isinstance(answer, bytes):
            job.job_id = answer

    def _move(self) -> None:
        """Move some jobs to the other queue."""
        world = self._world
        if not world.producing:
            return
        movable = [job for job in self.jobs[-6:] if job.may_be_moved and job.job_id]
        if movable and self._mover.connect():
            job = self._chance.choice(movable)
            job.moved = True
            self._mover.call(lambda _: None, "MOVEJOB", job.job_id, "TO", _QUEUES[1])
        world.later(500 + self._chance.random() * 1000, self._move)

    # --- workers ------------------------------------------------------------------------------------------------------

    def _get(self, worker: Caller) -> None:
        if not worker.connect():
            self._world.later(RECONNECT_MS, lambda: self._get(worker))
            return
        queues = (*_QUEUES, *_DEAD) if self._buries else _QUEUES
        worker.call(
            lambda answer: self._got(worker, answer),
            *("GETJOB", "TIMEOUT", 1000, "COUNT", 2, "FROM", *queues),
            on_sent=self._delivered,
        )

    def _job_of(self, body: bytes) -> Failing | None:
        word, _, number = body.partition(b" ")
        return self.jobs[int(number)] if word == b"bad" and number.isdigit() else None

    def _delivered(self, reply: Reply) -> None:
        """Note deliveries when they leave the node."""
        history = self._world.history
        for row in reply if isinstance(reply, list) else ():
            assert isinstance(row, list)
            body = row[2]
            assert isinstance(body, bytes)
            job = self._job_of(body)
            if job is None:
                history.violate(self._world.now_ms, f"{body!r} was delivered and never added")
                continue
            job.deliveries += 1
            if job.retry_s == 0 and job.deliveries > 1 and not job.rejected:
                history.violate(self._world.now_ms, f"{body!r}, at most once, was delivered {job.deliveries} times")
            assert isinstance(row[0], bytes)
            is_dead = row[0].decode() in _DEAD
            if not is_dead:
                self._redriver.delivered(body, row[0].decode())
            tied = self._world.now_ms - job.delivered_ms <= TIE_MS
            job.delivered_ms = self._world.now_ms
            redriven = self._redriver.active
            unexpected = not (history.faulty or history.distance_ms or job.moved or is_dead or tied or redriven)
            if self._world.now_ms < job.not_before_ms - EARLY_MS and unexpected:
                early_ms = job.not_before_ms - self._world.now_ms
                history.violate(self._world.now_ms, f"{body!r} was delivered {early_ms} ms before its delay was over")

    def _got(self, worker: Caller, answer: Answer) -> None:
        world = self._world
        if isinstance(answer, list):
            for row in answer:
                assert isinstance(row, list)
                job_id, body = row[1], row[2]
                assert isinstance(job_id, bytes)
                assert isinstance(body, bytes)
                job = self._job_of(body)
                if job is not None:
                    self._work(worker, job, job_id)
            world.later(1, lambda: self._get(worker))
            return
        if answer is not None:
            worker.hang_up()
        world.later(RECONNECT_MS, lambda: self._get(worker))

    def _work(self, worker: Caller, job: Failing, job_id: bytes) -> None:
        """Finish a good job; fail a poison job in one of several ways."""
        draw = self._chance.random()
        if not worker.connect():
            return
        if self._buries or self._redriver.active or not job.is_poison:
            worker.call(lambda _: None, "ACKJOB", job_id)
        elif draw < 0.15:
            worker.call(lambda _: None, "NACK", job_id, "UNCOUNTED")
        elif draw < 0.25 and job.retry_s > 0:
            return  # its retry time counts
        elif draw < 0.4 and job.retry_s > 0:
            worker.call(lambda _: None, "NACK", job_id, "DELAY", DELAY_S, "REASON", "later")
            job.not_before_ms = self._world.now_ms + DELAY_S * 1000
            self._world.history.rare["job given back for later"] += 1
        elif draw < 0.45:
            job.rejected = True
            worker.call(lambda _: None, "NACK", job_id, "DEAD", "REASON", "rejected")
        else:
            worker.call(lambda _: None, "NACK", job_id, "REASON", "poison")

    # --- after healing ------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """After healing: once all poison jobs are dead, check them, redrive them, and have everything acknowledged."""
        if not self._world.cluster.is_whole():
            self._whole_ms = 0
            return
        now_ms = self._world.now_ms
        self._whole_ms = self._whole_ms or now_ms
        if self._buries or now_ms - self._whole_ms <= REUNITED_MS:
            return
        if self.checked:
            unfinished = self._unfinished()
            dead = [job for job in unfinished if job.queue.decode() in _DEAD]
            self._redriver.look(dead, returned=len(unfinished) - len(dead))
            if self._redriver.done:
                self._bury()
            return
        if any(job.queue.decode() in _QUEUES for job in self._unfinished()):
            return
        self.checked = True
        self._check()
        self._look_for_twins()
        left = self._unfinished()
        if self._redriver.wanted and left:
            self._redriver.begin(left, _DEAD)
        else:
            self._bury()

    def _bury(self) -> None:
        """Have all that is left acknowledged."""
        self._buries = True
        self._end_undeliverable()

    def _look_for_twins(self) -> None:
        """Check that nodes that have reached each other for a while do not both have an old dead letter queued."""
        world = self._world
        queued = Counter(
            job.id for job in self._unfinished() if job.state == QUEUED and job.created_ms < self._whole_ms
        )
        for job_id, count in queued.items():
            if count > 1:
                world.history.violate(world.now_ms, f"{job_id!r} is queued on {count} nodes")

    def _unfinished(self) -> list[Job]:
        """All jobs of these clients on all nodes that are not acknowledged."""
        return [job for member in self._world.cluster.members for job in self._unfinished_of(member)]

    def _unfinished_of(self, member: Member) -> list[Job]:
        return [
            job
            for job in member.node.state.lifecycle.table.jobs()
            if job.is_unfinished and job.state != ACKED and job.queue.decode() in (*_QUEUES, *_DEAD)
        ]

    def _end_undeliverable(self) -> None:
        """Acknowledge dead letters that no node queues: at-most-once ones whose node was killed.

        They would stay until the end of their life, which is a week where the mover had lost its settings.
        """
        for member in self._world.cluster.members:
            for job in self._unfinished_of(member):
                if job.retry_s == 0 and job.state == ACTIVE:
                    member.tell("ACKJOB", job.id)

    def _check(self) -> None:
        """Check that each poison job has exactly one dead letter, that it is the right one, and that none is lost."""
        world = self._world
        dead: dict[int, dict[bytes, Job]] = {}
        for job in self._unfinished():
            found = self._job_of(job.body)
            assert found is not None
            dead.setdefault(found.number, {})[job.id] = job
        for failing in self.jobs:
            letters = dead.get(failing.number, {})
            world.history.rare["poison job became a dead letter"] += bool(letters)
            why = self._fault(failing, letters)
            if why:
                world.history.violate(world.now_ms, f"{failing.body!r} ({failing.job_id!r}): {why}")

    def _fault(self, failing: Failing, letters: dict[bytes, Job]) -> str:
        """What is wrong with the dead letters of a job."""
        lossless = self._world.history.all_losses == failing.losses_before and not self._world.history.lossy
        if not letters:
            kept = failing.job_id and failing.is_poison and failing.retry_s > 0 and lossless
            return "it is lost" if kept else ""
        for job_id, letter in letters.items():
            extra = letter.extra
            if extra is None or extra.get(META) != failing.meta:
                return f"{job_id!r} has not its metadata"
            if failing.job_id and extra.get(ORIGIN_ID) != failing.job_id:
                return f"{job_id!r} has not its origin"
            if not failing.moved and failing.job_id and job_id != successor_id(failing.job_id, _DEAD[0].encode(), 0):
                return f"{job_id!r} has another ID than the one derived"
            if extra.number(ATTEMPTS) < 1:
                return f"{job_id!r} has no attempts"
        if len(letters) > 1 and not failing.moved:
            return f"it has {len(letters)} dead letters"
        if not failing.is_poison and not self._world.history.faulty:
            return "it is dead, but all its attempts succeeded"
        return ""
