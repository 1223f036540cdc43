"""Rates and caps under faults: clients of two queues that nobody else uses, one with a `rate`, one with `inflight`.

In every window of time, all nodes together deliver at most rate * time + burst jobs of the first queue, until the first
node is forgotten or reset while it runs: then it is a cluster of its own, with limits of its own. Without faults,
workers never have more jobs of the second queue than it says. All jobs must be delivered in the end; the
other checks see to that. Jobs are added only on nodes that know the limits, because a node without them keeps none. Not
all seeds have rates, so that the others repeat runs from before; nor have mixes with disks, where a reply may wait.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from disqued.testing.workload import RECONNECT_MS, Caller

if TYPE_CHECKING:
    from disqued.testing.cluster import Member
    from disqued.testing.local import Reply
    from disqued.testing.workload import Answer, World

SHARE: Final = 0.25
"""The part of the seeds that have rates."""
RATE: Final = 8
"""Deliveries per second: fewer than producers add, so that jobs wait for tokens."""
BURST: Final = 5
"""At least as many as there can be sides of a partition, each of which may deliver one job at once."""
CAP: Final = 2
RATED: Final = "rated"
CAPPED: Final = "capped"
_MOST_JOBS: Final = 160
_PAUSE_MS: Final = 50
_RETRY_S: Final = 60
"""So long that no job is queued again while a worker has it."""
_HOLD_MS: Final = {RATED: 100, CAPPED: 800}
"""For how long workers keep a job at most."""
_WAIT_MS: Final = 1500
_TOLERANCE: Final = 1e-6
_APART: Final = ("forget", "reset_node")
"""The faults after which a running node does not belong to the cluster."""
_DRIFT: Final = 1.001
"""Clocks of nodes may run this much faster."""


def has_rates(seed: int) -> bool:
    """Whether the runs of a seed have queues with limits."""
    return Random(f"rates by {seed}").random() < SHARE  # noqa: S311 - repeatable chance is the point


class RateClients:
    """A client that sets the limits and adds jobs, and workers on all nodes."""

    def __init__(self, world: World, seed: int, mix: str) -> None:
        self._world = world
        self._calm = mix in {"calm", "far"}
        self._chance = Random(f"jobs with rates {seed}")  # noqa: S311 - repeatable chance is the point
        self._callers = [Caller(world, home, self._chance) for home in range(1, len(world.cluster.members) + 1)]
        self._added = 0
        self._overdrawn = 0.0
        """How full a bucket is that each delivery fills, and that empties with the rate."""
        self._last_ms = 0
        self._in_flight = 0
        self.deliveries = 0

    def start(self) -> None:
        """Start to work."""
        self._set()
        for home in range(1, len(self._callers) + 1):
            for queue in (RATED, RATED, CAPPED, CAPPED):
                _RateWorker(self, self._world, Caller(self._world, home, self._chance), queue).get()

    # --- the producer -------------------------------------------------------------------------------------------------

    def _set(self) -> None:
        self._callers[0].call(self._set_one, "QCONF", RATED, "SET", "rate", RATE, "burst", BURST)

    def _set_one(self, answer: Answer) -> None:
        if answer == b"OK":
            self._callers[0].call(self._set_other, "QCONF", CAPPED, "SET", "inflight", CAP)
        elif self._world.producing:
            self._world.later(RECONNECT_MS, self._set)

    def _set_other(self, answer: Answer) -> None:
        if answer == b"OK":
            self._world.later(1000, self._add)
        elif self._world.producing:
            self._world.later(RECONNECT_MS, self._set)

    def _add(self) -> None:
        world = self._world
        if not world.producing or self._added >= _MOST_JOBS:
            return
        world.later(20 + self._chance.random() * _PAUSE_MS, self._add)
        producer = self._chance.choice(self._callers)
        if producer.connect() and _knows_limits(producer.member):
            self._added += 1
            queue = self._chance.choice((RATED, RATED, RATED, RATED, CAPPED))
            copies = self._chance.choice((1, 1, 2))
            producer.call(
                _nothing, "ADDJOB", queue, b"rate %d" % self._added, 1000, "REPLICATE", copies, "RETRY", _RETRY_S
            )

    # --- what workers are given ---------------------------------------------------------------------------------------

    def delivered(self, queue: str, member: Member | None) -> None:
        """A reply with a job leaves a node."""
        self.deliveries += 1
        now_ms = self._world.now_ms
        if queue == CAPPED:
            self._in_flight += 1
            if self._calm and self._in_flight > CAP:
                self._world.history.violate(now_ms, f"workers have {self._in_flight} jobs, and inflight is {CAP}")
            return
        emptied = (now_ms - self._last_ms) * RATE * _DRIFT / 1000
        self._last_ms = now_ms
        self._overdrawn = max(self._overdrawn - emptied, 0.0) + 1
        faults = self._world.history.faults
        if self._overdrawn > BURST + _TOLERANCE and not any(name in faults for name in _APART):
            number = 0 if member is None else member.number
            self._world.history.violate(
                now_ms, f"node {number} delivers {self._overdrawn - BURST:.2f} jobs more than rate * time + burst"
            )

    def hold_ms(self, queue: str) -> float:
        """For how long a worker keeps a job."""
        return self._chance.random() * _HOLD_MS[queue]

    def acknowledged(self, queue: str) -> None:
        """A worker sends its acknowledgement."""
        if queue == CAPPED:
            self._in_flight -= 1


def _nothing(_answer: Answer) -> None:
    pass


def _knows_limits(member: Member | None) -> bool:
    """Whether a node has the settings of both queues."""
    if member is None or not member.serving:
        return False
    queues = member.node.state.lifecycle.queues
    found = [queues.settings_of(name.encode()) for name in (RATED, CAPPED)]
    return all(settings is not None and settings.limited for settings in found)


class _RateWorker:
    """Takes jobs of one queue, one at a time."""

    def __init__(self, clients: RateClients, world: World, caller: Caller, queue: str) -> None:
        self._clients = clients
        self._world = world
        self._caller = caller
        self._queue = queue

    def get(self) -> None:
        """Ask for a job."""
        if self._caller.connect():
            words = ("GETJOB", "TIMEOUT", _WAIT_MS, "FROM", self._queue)
            self._caller.call(self._got, *words, on_sent=self._sent)
        else:
            self._world.later(RECONNECT_MS, self.get)

    def _sent(self, reply: Reply) -> None:
        if isinstance(reply, list):
            self._clients.delivered(self._queue, self._caller.member)

    def _got(self, answer: Answer) -> None:
        if not isinstance(answer, list):
            self._world.later(RECONNECT_MS, self.get)
            return
        job = answer[0]
        assert isinstance(job, list)
        job_id = job[1]
        assert isinstance(job_id, bytes)
        self._world.later(self._clients.hold_ms(self._queue), lambda: self._acknowledge(job_id))

    def _acknowledge(self, job_id: bytes) -> None:
        self._clients.acknowledged(self._queue)
        self._caller.call(lambda _: self.get(), "ACKJOB", job_id)
