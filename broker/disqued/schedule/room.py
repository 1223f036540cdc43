"""The schedule room of one node: learns of schedules from the shared entries, and has them run."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.cluster.entrykinds import LAST_RUN, SCHEDULE
from disqued.core.cluster.peer import Peer
from disqued.core.runtime.room import Room
from disqued.core.runtime.state import NodeState
from disqued.schedule.definition import PAUSED, RUN, STATE, definition_of, runs_of, unpack
from disqued.schedule.known import Schedule
from disqued.schedule.payload import ASK, WITHDRAW, Item
from disqued.schedule.running import Running

NAME: Final = "schedule"
OVERDUE_MS: Final = 90_000
"""A schedule whose run is not known after this time is overdue: nodes learn of runs of other nodes once a minute."""
_FORGET_EVERY_MS: Final = 60_000
_BYTES_PER_SCHEDULE: Final = 2000
"""The memory of a schedule besides its body, whose entry the settings room counts."""


class ScheduleRoom(Room):
    """The schedules of one node."""

    def __init__(self, state: NodeState) -> None:
        super().__init__(state)
        self.running = Running(state)
        self._body_bytes: i64 = 0
        self._forget_at_ms: i64 = 0

    # --- events -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Learn first what other nodes did while this one was down."""
        self.running.settle()

    def peer_up(self, _peer: Peer) -> None:
        """Learn first what the other node did."""
        self.running.settle()

    def deadline_ms(self) -> i64:
        """At once while schedules must be planned."""
        state = self.state
        return state.now_ms if self.running.has_work and not state.loading and not state.ending else 0

    def due(self) -> None:
        """Plan some schedules."""
        state = self.state
        if self.running.has_work and not state.loading and not state.ending:
            self.running.proceed()

    def cron(self) -> None:
        """Repeat what has no answer, share runs, and forget old grants."""
        self.running.visit()
        now_ms = self.state.now_ms
        if self._forget_at_ms <= now_ms:
            self._forget_at_ms = now_ms + _FORGET_EVERY_MS
            self.running.voting.grants.forget_old(now_ms)

    def last_records(self) -> str:
        """Share all runs: the room of the settings writes them."""
        self.running.sharing.share(everything=True)
        return ""

    def buffered_bytes(self) -> i64:
        """The memory of the schedules."""
        return _BYTES_PER_SCHEDULE * len(self.running.schedules) + self._body_bytes

    def cluster_reset(self) -> None:
        """Forget all schedules: they are the cluster's."""
        for schedule in list(self.running.schedules.values()):
            self.running.drop(schedule)
        self.running.voting.grants.clear()
        self._body_bytes = 0

    def entry_changed(self, kind: int, name: bytes, key: bytes, value: bytes | None, version: int) -> None:
        """A schedule, its state or its last run has changed."""
        if kind not in {SCHEDULE, LAST_RUN}:
            return
        running = self.running
        schedule = running.schedules.get(name)
        if schedule is None:
            if value is None:
                return
            schedule = running.add(name)
        if kind == LAST_RUN:
            runs = None if value is None else runs_of(value)
            if runs is not None:
                running.sharing.learn(schedule, runs)
            return
        if key == RUN:
            self._define(schedule, value, version)
        elif key == STATE:
            words = None if value is None else unpack(value)
            schedule.paused = words is not None and words[:1] == [PAUSED]
            schedule.state_ms = version
        schedule.touch()

    # --- schedules ----------------------------------------------------------------------------------------------------

    def _define(self, schedule: Schedule, value: bytes | None, version: int) -> None:
        before = schedule.definition
        if before is not None:
            self._body_bytes -= len(before.body)
        definition = None if value is None else definition_of(value)
        schedule.definition = definition
        schedule.timing = None
        schedule.set_ms = version
        if definition is None:
            self.running.drop(schedule)
            return
        self._body_bytes += len(definition.body)
        try:
            schedule.timing = definition.timing(self.state.host)
        except ValueError as error:
            name = schedule.name.decode("utf-8", "backslashreplace")
            self.state.host.log("warning", f"Schedule has no effect on this node: name={name!r}: it {error}")

    def heard(self, sender: Peer, items: list[Item]) -> None:
        """Take items of another node."""
        voting = self.running.voting
        for item in items:
            schedule = self.running.schedules.get(item.name)
            if item.what in {ASK, WITHDRAW}:
                voting.asked(schedule, sender.id, sender.incarnation, item)
            else:
                voting.told(schedule, sender.id, item)
        voting.flush()

    def known(self, name: bytes) -> Schedule | None:
        """A schedule that is set."""
        schedule = self.running.schedules.get(name)
        return schedule if schedule is not None and schedule.definition is not None else None

    def count_overdue(self) -> int:
        """How many schedules should have run and, as far as this node knows, did not."""
        host = self.state.host
        latest_ms = self.state.now_ms - OVERDUE_MS
        count = 0
        for schedule in self.running.schedules.values():
            timing = schedule.timing
            if timing is not None and not schedule.paused:
                count += 0 < timing.next_ms(host, schedule.base_ms) < latest_ms
        return count

    def count_stopped(self) -> int:
        """How many schedules do not run on this side of the cluster, because it is not the majority."""
        if not self.running.schedules or self.running.voting.candidates.have_majority:
            return 0
        schedules = self.running.schedules.values()
        return sum(1 for one in schedules if one.definition is not None and one.definition.strict and not one.paused)

    def count_set(self) -> int:
        """How many schedules there are."""
        return sum(1 for schedule in self.running.schedules.values() if schedule.definition is not None)


def schedule_of(state: NodeState) -> ScheduleRoom:
    """The schedule room of a node."""
    room = state.rooms[NAME]
    assert isinstance(room, ScheduleRoom)
    return room
