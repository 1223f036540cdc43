"""Purges under faults: clients that add jobs to a queue nobody else uses, and purge it once or twice per run.

No worker takes the jobs before all nodes agree again, so they end by purges alone. The queue is purged while a node is
away if one ever is: what that node has, or gets back from its file, must not come back. Jobs that are created after the
mark must stay. Not all seeds have purges, so that the others repeat runs from before.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from disqued.core.cluster.entrykinds import PURGE
from disqued.core.jobs.job import ACKED, QUEUED, Job
from disqued.core.jobs.phases import IN_QUEUE, PHASES
from disqued.settings.entries import Entry, mark_of
from disqued.settings.room import settings_of
from disqued.testing.history import Attempt
from disqued.testing.workload import RECONNECT_MS, Caller

if TYPE_CHECKING:
    from disqued.testing.cluster import Member
    from disqued.testing.local import Reply
    from disqued.testing.workload import Answer, World

SHARE: Final = 0.2
"""The part of the seeds that have purges."""
GONE_MS: Final = 2000
"""How long a node may have a job queued that it must delete, while no link of it is congested (seed 850)."""
AGREE_MS: Final = 8000
"""How long after all nodes are connected no job that was purged waits anywhere: copies end with their retry time."""
QUEUE: Final = "purged"
_PAUSE_MS: Final = 900
_RETRY_S: Final = 3
_FIRST_MS: Final = (3000, 7000)
"""When the queue is purged first, unless all nodes are connected then."""
_PATIENCE_MS: Final = 4000
"""How long a purge waits for a node that is away."""
_LOOK_MS: Final = 200
_CLOCKS: Final = frozenset({"clocks", "all", "logged clocks", "logged all"})
"""Mixes in which nodes do not agree about what was created before a mark."""
_LOSING: Final = frozenset({"lose_disk", "reset_node", "forget", "join"})
"""Faults after which a node may not have the marks any more."""


def has_purges(seed: int) -> bool:
    """Whether the runs of a seed have purges."""
    return Random(f"purges by {seed}").random() < SHARE  # noqa: S311 - repeatable chance is the point


class PurgeClients:
    """A client that adds jobs, one that purges them, and, in the end, workers that take what is left."""

    def __init__(self, world: World, seed: int, mix: str) -> None:
        self._world = world
        self._chance = Random(f"jobs to purge {seed}")  # noqa: S311 - repeatable chance is the point
        self._exact = mix not in _CLOCKS
        count = len(world.cluster.members)
        self._adder, self._purger = [Caller(world, self._chance.randint(1, count), self._chance) for _ in range(2)]
        self._workers = [Caller(world, home, self._chance) for home in range(1, count + 1)]
        self._jobs: list[Attempt] = []
        self._created: dict[int, int] = {}
        """The `ctime` of each job, by its number."""
        self._promised: Entry | None = None
        """The greatest mark behind a reply to a client."""
        self._purges = 0
        self._since_ms: dict[tuple[int, bytes], int] = {}
        """Since when a node has a job queued that it must delete."""
        self._whole_ms = 0
        """Since when all nodes have been connected, after healing; 0 while they are not."""
        self.checked = False

    def start(self) -> None:
        """Start to work."""
        self._world.later(self._chance.random() * _PAUSE_MS, self._add)
        self._purge_later(self._chance.randint(*_FIRST_MS))

    # --- clients ------------------------------------------------------------------------------------------------------

    def _add(self) -> None:
        world = self._world
        chance = self._chance
        if not world.producing:
            return
        world.later(100 + chance.random() * _PAUSE_MS, self._add)
        if not self._adder.connect() or self._adder.member is None:
            return
        attempt = Attempt(
            number=len(self._jobs),
            at_ms=world.now_ms,
            queue=QUEUE,
            replicate=chance.choice((1, 2, 3)),
            retry_s=_RETRY_S,
            ttl_s=3600,
            delay_s=chance.choice((0, 0, 1, 4)),
            asynchronous=False,
            member=self._adder.member.number,
        )
        self._jobs.append(attempt)
        options: list[str | int] = ["REPLICATE", attempt.replicate, "RETRY", attempt.retry_s, "TTL", attempt.ttl_s]
        options += ["DELAY", attempt.delay_s] if attempt.delay_s else []
        self._adder.call(
            lambda answer: self._added(attempt, answer),
            *("ADDJOB", QUEUE, b"purge %d" % attempt.number, 1000, *options),
            on_sent=lambda reply: self._told(attempt, reply),
        )

    def _told(self, attempt: Attempt, reply: Reply) -> None:
        """Note which nodes have a job when its ID leaves the node."""
        if not isinstance(reply, bytes):
            return
        history = self._world.history
        attempt.told_ms = self._world.now_ms
        for member in self._world.cluster.members:
            job = member.node.state.lifecycle.table.get(reply)
            if job is not None and member.serving:
                self._created[attempt.number] = int(job.ctime)
                attempt.holders.append((member.number, history.losses(member.number)))
        attempt.copies_short = max(0, attempt.promised - len(attempt.holders))

    def _added(self, attempt: Attempt, answer: Answer) -> None:
        attempt.job_id = answer if isinstance(answer, bytes) else None

    def _purge_later(self, in_ms: int) -> None:
        until_ms = self._world.now_ms + in_ms + _PATIENCE_MS
        self._world.later(in_ms, lambda: self._purge(until_ms))

    def _purge(self, until_ms: int) -> None:
        """Purge the queue once a node is away, or nothing keeps all nodes from each other for long."""
        world = self._world
        if not world.producing:
            return
        if world.cluster.is_whole() and world.now_ms < until_ms:
            world.later(_LOOK_MS, lambda: self._purge(until_ms))
            return
        self._purger.call(lambda _: None, "QPURGE", QUEUE, "TIMEOUT", 500, on_sent=self._purged)
        world.history.rare["queue purged"] += 1
        self._purges += 1
        if self._purges == 1 and self._chance.random() < 0.5:
            self._purge_later(2000)

    def _purged(self, reply: Reply) -> None:
        """Note the mark behind a reply: it is on the disk of the node."""
        member = self._purger.member
        if isinstance(reply, list) and member is not None:
            self._promised = max(self._promised, _entry_on(member), key=_mark_in)

    # --- checks -------------------------------------------------------------------------------------------------------

    def watch(self) -> None:
        """Check that no node has a job queued for long that it must delete."""
        world = self._world
        now_ms = world.now_ms
        found: dict[tuple[int, bytes], int] = {}
        for member in world.cluster.members:
            if not member.serving or _is_congested(member):
                continue
            lifecycle = member.node.state.lifecycle
            for job in lifecycle.table.jobs():
                if job.state == QUEUED and lifecycle.queues.purges.covers(job):
                    key = (member.number, job.id)
                    found[key] = self._since_ms.get(key, now_ms)
                    if now_ms - found[key] > GONE_MS:
                        world.history.violate(now_ms, f"node {member.number} has {job.id!r} queued, which was purged")
        self._since_ms = found

    def look(self) -> None:
        """After healing: check once what is left, and have it taken."""
        now_ms = self._world.now_ms
        if self.checked:
            return
        if not self._world.cluster.is_whole():
            self._whole_ms = 0
            return
        self._whole_ms = self._whole_ms or now_ms
        if now_ms - self._whole_ms >= AGREE_MS:
            self.checked = True
            self._check()
            for worker in self._workers:
                self._get(worker)

    def _check(self) -> None:
        """Check that all nodes have the marks, and what is left of the jobs."""
        world = self._world
        history = world.history
        members = world.cluster.members
        promised = None if self._may_be_lost() else self._promised
        newest = max(promised, *[_entry_on(member) for member in members], key=_mark_in)
        mark = _mark_in(newest)
        for member in members:
            if newest is not None and mark_on(member) < mark and member.now_ms < newest.expires_ms():
                history.violate(world.now_ms, f"node {member.number} has the mark {mark_on(member)} instead of {mark}")
        left = [job for member in members for job in _jobs_on(member)]
        for job in left:
            if job.ctime < mark and self._exact:
                history.violate(world.now_ms, f"{job.id!r}, which was purged, is in state {job.state}")
        kept = {job.body for job in left}
        for attempt in self._jobs:
            if self._must_stay(attempt, mark) and b"purge %d" % attempt.number not in kept:
                history.violate(
                    world.now_ms,
                    f"{attempt.job_id!r}, created after the mark {mark}, is lost; held by {attempt.holders}",
                )
                break

    def _may_be_lost(self) -> bool:
        """Whether nodes may have lost marks together with their disks."""
        return not _LOSING.isdisjoint(self._world.history.faults)

    def _must_stay(self, attempt: Attempt, mark: int) -> bool:
        """Whether a job was created after the mark, and not too many of its holders failed."""
        history = self._world.history
        created = self._created.get(attempt.number, 0)
        if attempt.job_id is None or created < mark or not self._exact or history.owners_change:
            return False
        return history.failed_holders(attempt) < attempt.promised

    # --- workers ------------------------------------------------------------------------------------------------------

    def _get(self, worker: Caller) -> None:
        worker.call(lambda answer: self._got(worker, answer), "GETJOB", "TIMEOUT", 1000, "COUNT", 5, "FROM", QUEUE)

    def _got(self, worker: Caller, answer: Answer) -> None:
        for row in answer if isinstance(answer, list) else ():
            assert isinstance(row, list)
            job_id, body = row[1], row[2]
            assert isinstance(job_id, bytes)
            assert isinstance(body, bytes)
            created = self._created.get(int(body.split()[1]), 0)
            mark = max(mark_on(member) for member in self._world.cluster.members)
            if self._exact and 0 < created < mark:
                self._world.history.violate(self._world.now_ms, f"{job_id!r} was delivered, and purged before")
            worker.call(lambda _: None, "ACKJOB", job_id)
        self._world.later(RECONNECT_MS, lambda: self._get(worker))


def mark_on(member: Member) -> int:
    """The mark that a member keeps; 0 for none."""
    return _mark_in(_entry_on(member))


def _entry_on(member: Member) -> Entry | None:
    """The entry with the mark that a member keeps. It expires sooner where clocks are days ahead of its maker."""
    return settings_of(member.node.state).entries.get(PURGE, QUEUE.encode(), PHASES[IN_QUEUE])


def _mark_in(entry: Entry | None) -> int:
    """The mark in an entry; 0 for none."""
    mark = None if entry is None else mark_of(entry.value)
    return 0 if mark is None else mark[0]


def is_purged(member: Member, body: bytes) -> bool:
    """Whether a member may have deleted a job that it just loaded; `PurgeClients` checks whether it should."""
    return body.startswith(b"purge ") and mark_on(member) > 0


def _is_congested(member: Member) -> bool:
    """Whether a member deletes no jobs now, because a link has no room for the messages about them."""
    return any(peer.link is not None and peer.link.congested for peer in member.node.state.view.peers.values())


def _jobs_on(member: Member) -> list[Job]:
    """The jobs of the queue on a member that are not finished."""
    return [
        job
        for job in member.node.state.lifecycle.table.jobs()
        if job.is_unfinished and job.state != ACKED and job.queue == QUEUE.encode()
    ]
