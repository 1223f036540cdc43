"""What the planner and its concerns return: decisions with actions and notes, and the plan with status and events.

A note becomes part of a condition: it has a reason for programs, and a message for people that says what to do if there
is something to do. Messages contain no numbers that change by themselves, because every new message is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from disque_operator.actions import Action
from disque_operator.apivalues import Json

Topic = Literal["Progressing", "Draining", "Degraded", "Updated", "SpecValid"]
Turn = Literal["none", "wanted", "taken"]
"""Whether a cluster needs no turn for an update, waits only for its turn, or is being updated."""
Phase = Literal[
    "Paused",
    "Hibernated",
    "Hibernating",
    "Degraded",
    "Creating",
    "Draining",
    "Upgrading",
    "Growing",
    "Healing",
    "Applying",
    "Running",
]
PHASES: Final[tuple[Phase, ...]] = get_args(Phase)
"""Phases by priority: the first one of all notes is the phase of the cluster."""


_AT_REST: Final[frozenset[Phase]] = frozenset({"Running", "Paused", "Hibernated"})


@dataclass(frozen=True)
class Note:
    """Something to report in the status."""

    topic: Topic
    reason: str
    message: str
    phase: Phase
    holds: bool = True
    """Whether the condition is True. A refused drain is reported in `Draining`, which then is False."""

    @property
    def changes(self) -> bool:
        """Return whether it reports that members, objects or settings are being changed."""
        return self.topic in {"Progressing", "Draining"} and self.phase not in _AT_REST


@dataclass(frozen=True)
class Decision:
    """What one concern decides: actions to execute, and notes for the status."""

    actions: tuple[Action, ...] = ()
    notes: tuple[Note, ...] = ()
    disrupts: bool = False
    """Whether it takes a member out of service, or is about to, so that no other concern may."""


NOTHING: Final = Decision()


def joined(decisions: Iterable[Decision]) -> Decision:
    """Return several decisions as one."""
    several = tuple(decisions)
    return Decision(
        tuple(action for decision in several for action in decision.actions),
        tuple(note for decision in several for note in decision.notes),
        any(decision.disrupts for decision in several),
    )


def progress(reason: str, message: str, phase: Phase) -> Note:
    """Return a note about a change that will complete without help."""
    return Note("Progressing", reason, message, phase)


def problem(reason: str, message: str) -> Note:
    """Return a note about a problem that the operator cannot solve."""
    return Note("Degraded", reason, message, "Degraded")


SOON_S: Final = 2.0
"""Seconds until the next round while something is in progress."""
IDLE_S: Final = 30.0
"""Seconds until the next round of a healthy cluster. Watches report changes of objects earlier."""


@dataclass(frozen=True)
class Event:
    """A Kubernetes event of the resource, posted once for each transition."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True)
class Plan:
    """The result of `plan`."""

    actions: tuple[Action, ...] = ()
    status: Json = field(default_factory=dict)
    """The whole status. It is written only if it differs enough from the present one (`status_writes`)."""
    events: tuple[Event, ...] = ()
    again_s: float = IDLE_S
    """Seconds until the next round."""
    turn: Turn = "none"
    """What the cluster needs of the others (`turns`)."""
