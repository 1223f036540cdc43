"""Schedules on one node: when each is due next, and the runs that begin here.

The node with the highest score for the name of a schedule fires it. Only that node has a timer for it. When the members
change, each node decides again which schedules are its own, a bounded number at a time. A run of a schedule with STRICT
begins when the majority has granted it (`voting`). Then its job is added (`adding`), with an ID that is derived from
the name and the time, so two nodes that start the same run add one job.

After a gap only the latest time that has come is run: within LATE_MS, or however late with MISSED once. The others are
counted as missed, except those of the last minute, which may be known to another node only (`sharing`).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.runtime.state import NodeState
from disqued.schedule.adding import LATE_MS, Adding
from disqued.schedule.candidates import Candidates
from disqued.schedule.definition import Definition
from disqued.schedule.known import Schedule
from disqued.schedule.sharing import SHARE_MS, Sharing
from disqued.schedule.timing import Timing
from disqued.schedule.voting import SETTLE_MS, Voting

PROMPT_MS: Final = 2000
"""A run that is later than this does not begin within SETTLE_MS after the start, or after a node came back: this node
learns meanwhile whether another one has fired."""
MOST_COUNTED: Final = 100
"""At most so many times of one gap are counted as missed."""
PER_TURN: Final = 50
"""How many schedules are planned in one turn of the event loop."""


class Running:
    """The schedules of one node."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self.schedules: dict[bytes, Schedule] = {}
        self.sharing = Sharing(state)
        self._adding = Adding(state, self.sharing)
        self.voting = Voting(state, self._adding)
        self.settled_ms: i64 = 0
        """When this node knows what the others know."""
        self._touched: dict[bytes, Schedule] = {}
        """Schedules to plan."""

    @property
    def has_work(self) -> bool:
        """Whether schedules must be planned now."""
        return bool(self._touched)

    def add(self, name: bytes) -> Schedule:
        """Learn of a schedule that was not known."""
        schedule = Schedule(name, self._touched)
        self.schedules[name] = schedule
        return schedule

    def touch_all(self) -> None:
        """Have all schedules planned soon."""
        self._touched.update(self.schedules)

    def settle(self) -> None:
        """This node may not know of runs of others for a while."""
        if self._state.view.size > 1:
            self.settled_ms = self._state.now_ms + SETTLE_MS

    def proceed(self) -> None:
        """Plan some schedules."""
        self._look()
        for name in list(self._touched)[:PER_TURN]:
            schedule = self._touched.pop(name)
            if not schedule.is_dropped:
                self._plan(schedule)
        self.voting.flush()

    def visit(self) -> None:
        """Look at the members, repeat questions and attempts, and share runs."""
        if not self.schedules:
            return
        self._look()
        self.voting.visit()
        self._adding.visit()
        self.sharing.visit()
        self.voting.flush()

    def _look(self) -> None:
        """Plan all schedules if the members have changed."""
        candidates = Candidates(self._state)
        if not candidates.is_like(self.voting.candidates):
            self.voting.candidates = candidates
            self.touch_all()

    def drop(self, schedule: Schedule) -> None:
        """A schedule is removed."""
        schedule.is_dropped = True
        self.voting.stop(schedule)
        self._state.lifecycle.timers.disarm(schedule)
        self.schedules.pop(schedule.name, None)
        self._touched.pop(schedule.name, None)
        self.sharing.forget(schedule)

    def _plan(self, schedule: Schedule) -> None:
        """Begin a run that is due, or set the timer to the next time."""
        state = self._state
        timers = state.lifecycle.timers
        timers.disarm(schedule)
        definition = schedule.definition
        timing = schedule.timing
        if definition is None or timing is None or not self._fires(schedule, definition):
            self.voting.stop(schedule)
            return
        host = state.host
        now_ms = state.now_ms
        base_ms = schedule.base_ms
        due_ms = timing.latest_ms(host, base_ms, now_ms)
        if due_ms > 0:
            late_ms = now_ms - due_ms
            if late_ms > LATE_MS and not definition.missed_once:
                self.voting.stop(schedule)
                self.sharing.miss(schedule, due_ms, 1 + self._gap(schedule, timing, due_ms), b"nothing ran it in time")
            elif late_ms > PROMPT_MS and now_ms < self.settled_ms:
                timers.arm(schedule, self.settled_ms)
                return
            else:
                self._begin(schedule, definition, timing, due_ms)
            base_ms = due_ms
        next_ms = timing.next_ms(host, base_ms)
        if next_ms > 0:
            timers.arm(schedule, next_ms)

    def _fires(self, schedule: Schedule, definition: Definition) -> bool:
        """Whether this node fires a schedule."""
        candidates = self.voting.candidates
        if schedule.paused or candidates.unknown > 0 or (definition.strict and not candidates.have_majority):
            return False
        return candidates.first(schedule.name) == self._state.view.node_id

    def _begin(self, schedule: Schedule, definition: Definition, timing: Timing, due_ms: i64) -> None:
        """Begin the run of a time, unless it has begun."""
        asking = schedule.asking
        if asking is not None:
            if asking.due_ms == due_ms:
                return
            self.voting.stop(schedule)
            self.sharing.miss(schedule, asking.due_ms, 1, b"no majority of the members agreed in time")
        gap = self._gap(schedule, timing, due_ms)
        if gap > 0:
            self.sharing.count_missed(schedule, gap)
        if not definition.strict or self.voting.candidates.size == 1:
            self._adding.start(schedule, definition, due_ms)
            return
        self.voting.begin(schedule, due_ms)

    def _gap(self, schedule: Schedule, timing: Timing, due_ms: i64) -> i64:
        """How many times were missed before one."""
        base_ms = schedule.base_ms
        if not schedule.runs_are_own:
            base_ms += SHARE_MS
        return timing.count(self._state.host, base_ms, due_ms, MOST_COUNTED) if base_ms < due_ms else 0
