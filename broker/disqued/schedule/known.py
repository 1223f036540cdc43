"""One schedule, as one node knows it, and its run for which the node asks the majority."""

from __future__ import annotations

from mypy_extensions import i64, mypyc_attr

from disqued.core.runtime.state import NodeState
from disqued.core.timers.alarm import Alarm
from disqued.schedule.definition import Definition, Runs
from disqued.schedule.timing import Timing


@mypyc_attr(acyclic=True)
class Asking:
    """A run that waits until the majority grants it."""

    def __init__(self, due_ms: i64, now_ms: i64) -> None:
        self.due_ms: i64 = due_ms
        self.ask_at_ms: i64 = now_ms
        """When the voters that did not answer are asked again."""
        self.asked: i64 = 0
        """How often."""
        self.granted: dict[bytes, None] = {}
        """The members that granted it to this node."""
        self.refused: dict[bytes, bytes] = {}
        """The members that granted it to another node, and to which one."""


class Schedule(Alarm):
    """One schedule, as this node knows it; the alarm rings when it is due and this node fires it."""

    def __init__(self, name: bytes, touched: dict[bytes, Schedule]) -> None:
        # It refers to the schedules that wait, not to the node: the timer wheel would keep the node in the memory.
        super().__init__()
        self.name = name
        self._touched = touched
        self.is_dropped: bool = False
        """It is removed, though it may be set again, as another object."""
        self.definition: Definition | None = None
        self.timing: Timing | None = None
        """None if this node does not understand the definition."""
        self.set_ms: i64 = 0
        """When it was set: earlier times do not count."""
        self.paused: bool = False
        self.state_ms: i64 = 0
        """When it was paused or resumed: earlier times do not count."""
        self.runs = Runs()
        self.runs_are_own: bool = False
        """This node made the last of them: it knows all of them."""
        self.begun_ms: i64 = 0
        """The time of the last run that began, or was refused, on this node."""
        self.asking: Asking | None = None
        self.shared_ms: i64 = 0
        """When its runs were shared by this node."""
        self.by_hand_ms: i64 = 0
        """The time of the last run by hand."""

    def ring(self, state: NodeState) -> None:
        """Begin a run."""
        del state
        self.touch()

    def touch(self) -> None:
        """Have it planned soon."""
        self._touched[self.name] = self

    @property
    def base_ms(self) -> i64:
        """Times up to this one are dealt with, or do not count."""
        return max(self.set_ms, self.state_ms, self.runs.through_ms, self.begun_ms)
