"""What became of the runs of schedules: counted here, shared with the members, and learned from them.

Nodes learn of runs at most once a minute, so the times of the last minute may be known to another node only.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.cluster.entrykinds import LAST_RUN
from disqued.core.runtime.state import NodeState
from disqued.core.telemetry.loglimit import LogLimit
from disqued.errors import ReplyError
from disqued.schedule.counters import FIRED, MISSED
from disqued.schedule.definition import LAST, Runs
from disqued.schedule.known import Schedule

SHARE_MS: Final = 60_000
"""How often the runs of one schedule are shared at most."""
BATCH_MS: Final = 5000
"""How often runs of any schedules are shared at most."""


class Sharing:
    """The runs that this node knows, and which of them it must share."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self._unshared: dict[bytes, Schedule] = {}
        self._next_ms: i64 = 0
        self._is_sharing: bool = False
        self._log = LogLimit(3)

    def fired(self, schedule: Schedule, due_ms: i64, job_id: bytes) -> None:
        """The job of a run was added."""
        self._state.counters.add(FIRED)
        runs = schedule.runs
        runs.fired += 1
        if due_ms >= runs.fired_ms:
            runs.fired_ms = due_ms
            runs.job_id = job_id
            runs.problem = b""
        self._through(schedule, due_ms)

    def miss(self, schedule: Schedule, due_ms: i64, count: i64, problem: bytes) -> None:
        """A time passed without a run, and so did others before it."""
        self.count_missed(schedule, count)
        schedule.runs.problem = problem
        schedule.begun_ms = max(schedule.begun_ms, due_ms)
        self._through(schedule, due_ms)
        if self._log.allows(schedule.name, int(self._state.now_ms)):
            name = schedule.name.decode("utf-8", "backslashreplace")
            why = problem.decode("utf-8", "backslashreplace")
            self._state.host.log("warning", f"Schedule missed: name={name!r} due_ms={due_ms} why={why!r}")

    def count_missed(self, schedule: Schedule, count: i64) -> None:
        """Some times passed without runs."""
        self._state.counters.add(MISSED, count)
        schedule.runs.missed += count
        self.must_share(schedule)

    def _through(self, schedule: Schedule, due_ms: i64) -> None:
        schedule.runs.through_ms = max(schedule.runs.through_ms, due_ms)
        schedule.runs_are_own = True
        self.must_share(schedule)

    def must_share(self, schedule: Schedule) -> None:
        """The runs of a schedule have changed here."""
        if not schedule.is_dropped:
            self._unshared[schedule.name] = schedule

    def forget(self, schedule: Schedule) -> None:
        """A schedule is removed."""
        self._unshared.pop(schedule.name, None)

    def visit(self) -> None:
        """Share what must be shared by now."""
        if self._unshared and self._next_ms <= self._state.now_ms:
            self.share(everything=False)

    def share(self, *, everything: bool) -> None:
        """Share the runs of schedules, of each once a minute, unless all must be shared now."""
        now_ms = self._state.now_ms
        changes: list[tuple[int, bytes, bytes, bytes | None]] = []
        for schedule in list(self._unshared.values()):
            timing = schedule.timing
            if timing is None or (not everything and now_ms < schedule.shared_ms + SHARE_MS):
                continue
            schedule.shared_ms = now_ms
            forgotten_ms = timing.forgotten_ms
            changes.append((LAST_RUN, schedule.name, LAST, schedule.runs.packed(forgotten_ms)))
            del self._unshared[schedule.name]
        if not changes:
            return
        self._next_ms = now_ms + BATCH_MS
        self._is_sharing = True
        try:
            self._state.events.entries_wanted(changes)
        except ReplyError as error:
            self._state.host.log("warning", f"Last runs of schedules not shared: {error}")
        self._is_sharing = False

    def learn(self, schedule: Schedule, runs: Runs) -> None:
        """Take what a member knows about the runs of a schedule, unless this node knows more."""
        if self._is_sharing:
            return
        if runs.through_ms < schedule.runs.through_ms:
            self.must_share(schedule)
            return
        schedule.runs = runs
        schedule.runs_are_own = False
        self._unshared.pop(schedule.name, None)
        schedule.touch()
