"""Schedules under faults: two that are due every few seconds, workers for their jobs, and the checks of each run.

One schedule has STRICT: no two nodes may start the same run, whatever happens to the network. The other one has not:
both sides of a partition may. No job may be added before its time, by the clock of the node that adds it, and each has
the ID that follows from the schedule and the time. Without faults no time may be missed, and the counts of runs and of
missed times must add up to the times that were due. Only some seeds have schedules, so that the others repeat runs from
before. The clients draw from a chance of their own.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final

from disqued.core.jobs.runs import RunOf
from disqued.testing.workload import RECONNECT_MS, Caller

if TYPE_CHECKING:
    from disqued.testing.workload import Answer, World

SHARE: Final = 0.15
"""The part of the seeds that have schedules."""
STRICT: Final = "sched:strict"
BOTH: Final = "sched:both"
"""The names of the schedules, and of their queues."""
PERIODS_MS: Final = {STRICT: 3000, BOTH: 1000}
"""A run with STRICT could begin again on another side of a partition if no later one is due before that is noticed."""
_COPIES: Final = {STRICT: 1, BOTH: 2}
"""The only copy of a job with STRICT is often on the other side, so that nobody notices that it exists already."""
_PAUSE_MS: Final = 1000
_DELETE_MS: Final = 700
_FORGIVEN_MS: Final = 30_000
"""Within this time of a run, a node that loses its memory may have it run twice: it forgets what it granted."""
_FIRST_RUNS: Final = 3
"""Runs that may be missing in the beginning: the nodes meet."""


def has_schedules(seed: int) -> bool:
    """Whether the runs of a seed have schedules."""
    return Random(f"schedules {seed}").random() < SHARE  # noqa: S311 - repeatable chance is the point


class ScheduleClients:
    """Sets the schedules, works for them, and removes them when the faults are over."""

    def __init__(self, world: World, seed: int, *, calm: bool) -> None:
        self._world = world
        self._calm = calm
        """No time may be missed."""
        self._chance = Random(f"runs of schedules {seed}")  # noqa: S311 - repeatable chance is the point
        self._readers = [Caller(world, member.number, self._chance) for member in world.cluster.members]
        """They ask for the counts of runs."""
        self._made: dict[tuple[bytes, int], set[int]] = {}
        """The creation times of the jobs of each run: one for each node that added it."""
        self._seen_ms: dict[tuple[bytes, int], int] = {}
        """When the first job of each run was delivered."""
        self._losses = 0
        self._lost_ms = -_FORGIVEN_MS
        """When a node was last seen to have lost its memory."""

    def start(self) -> None:
        """Start to work."""
        self._world.later(self._chance.random() * _PAUSE_MS, self._set)
        for member in self._world.cluster.members:
            self._get(Caller(self._world, member.number, self._chance))

    def _set(self) -> None:
        """Set both schedules repeatedly, as programs do; later remove them, until no node has them."""
        world = self._world
        self._look()
        alive = [member for member in world.cluster.members if member.serving]
        if world.producing and alive:
            member = self._chance.choice(alive)
            for name, strict in ((STRICT, "yes"), (BOTH, "no")):
                words = (f"every {PERIODS_MS[name] // 1000} s", name, "body", "TTL", 60, "RETRY", 8)
                options = ("REPLICATE", _COPIES[name], "STRICT", strict, "MISSED", "once")
                member.tell("SCHEDULE", name, "SET", *words, *options)
                self._compare_counts(name)
        elif not world.producing:
            for member in alive:
                for name in (STRICT, BOTH):
                    member.tell("SCHEDULE", name, "DEL")
        world.later(_DELETE_MS + self._chance.random() * _PAUSE_MS, self._set)

    def _compare_counts(self, name: str) -> None:
        """Compare the counts of each node with the times that were due, if nothing happens."""
        for caller in self._readers if self._calm else ():
            if caller.connect():
                caller.call(partial(self._counted, caller), "SCHEDULE", name, "SHOW")

    def _counted(self, caller: Caller, answer: Answer) -> None:
        """Check that each time was a run or counts as missed, on the node that fires: others can be a minute behind."""
        if not isinstance(answer, list) or caller.member is None:
            return
        found = dict(zip(answer[::2], answer[1::2], strict=True))
        if found[b"node"] != caller.member.id:
            return
        name, set_ms, last_ms = found[b"name"], found[b"changed-ms"], found[b"last-ms"]
        runs, missed = found[b"runs"], found[b"runs-missed"]
        assert isinstance(name, bytes)
        assert isinstance(set_ms, int)
        assert isinstance(last_ms, int)
        assert isinstance(runs, int)
        assert isinstance(missed, int)
        period_ms = PERIODS_MS[name.decode()]
        due = last_ms // period_ms - set_ms // period_ms if last_ms > 0 else 0
        world = self._world
        world.history.rare["counts of a schedule compared"] += 1
        if runs + missed != due:
            world.history.violate(world.now_ms, f"{name!r} was due {due} times: {runs} runs, and {missed} missed")

    def _get(self, caller: Caller) -> None:
        if caller.connect():
            caller.call(partial(self._got, caller), "GETJOB", "TIMEOUT", 1500, "COUNT", 5, "FROM", STRICT, BOTH)
        else:
            self._world.later(RECONNECT_MS, partial(self._get, caller))

    def _got(self, caller: Caller, answer: Answer) -> None:
        for job in answer if isinstance(answer, list) else ():
            assert isinstance(job, list)
            job_id = job[1]
            assert isinstance(job_id, bytes)
            if caller.connect():
                caller.call(self._shown, "SHOW", job_id)
                caller.call(lambda _: None, "ACKJOB", job_id)
        self._world.later(1, partial(self._get, caller))

    def _shown(self, answer: Answer) -> None:
        if not isinstance(answer, list):
            return
        found = dict(zip(answer[::2], answer[1::2], strict=True))
        job_id, name, due_ms, ctime = (found.get(key) for key in (b"id", b"schedule", b"due-ms", b"ctime"))
        if not (isinstance(job_id, bytes) and isinstance(name, bytes)):
            return
        assert isinstance(due_ms, int)
        assert isinstance(ctime, int)
        world = self._world
        history = world.history
        history.rare["job of a schedule delivered"] += 1
        if job_id[11:35] != RunOf(name, due_ms).characters():
            history.violate(world.now_ms, f"{job_id!r} is not the job of {name!r} at {due_ms}")
        if ctime // 1_000_000 < due_ms:
            history.violate(world.now_ms, f"{name!r} ran {due_ms - ctime // 1_000_000} ms early")
        made = self._made.setdefault((name, due_ms), set())
        made.add(ctime)
        self._look()
        seen_ms = self._seen_ms.setdefault((name, due_ms), world.now_ms)
        if name == STRICT.encode() and len(made) > 1 and self._lost_ms < seen_ms - _FORGIVEN_MS:
            history.violate(world.now_ms, f"{name!r} ran twice at {due_ms}: {sorted(made)}")

    def _look(self) -> None:
        """Note whether a node lost its memory, and with it what it knew about runs."""
        losses = sum(self._world.history.memory_losses.values())
        if losses != self._losses:
            self._losses = losses
            self._lost_ms = self._world.now_ms

    def check_end(self) -> None:
        """Check that no time was missed, if nothing happened."""
        if not self._calm:
            return
        for name, period_ms in PERIODS_MS.items():
            times = sorted(due_ms for known, due_ms in self._made if known == name.encode())
            missing = set(range(times[0], times[-1], period_ms)) - set(times) if times else {0}
            if len(missing) > _FIRST_RUNS or not times:
                self._world.history.violate(self._world.now_ms, f"{name!r} missed {sorted(missing)}")
