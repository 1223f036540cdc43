"""What each concern of `plan` gives back: actions, and notes that become the status.

A note names the condition that it belongs to, a reason in one word and a message for people, which says what to do
where something can be done. Messages have no figures that move by themselves: a new message is a new status, and is
written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

from disque_operator.actions import Action
from disque_operator.apivalues import Json

Topic = Literal["Progressing", "Draining", "Degraded", "SpecValid"]
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
    "Running",
]
PHASES: Final[tuple[Phase, ...]] = (
    "Paused",
    "Hibernated",
    "Hibernating",
    "Degraded",
    "Creating",
    "Draining",
    "Upgrading",
    "Growing",
    "Healing",
    "Running",
)
"""The first one that somebody speaks of is the cluster's."""


@dataclass(frozen=True)
class Note:
    """Something that people should know."""

    topic: Topic
    reason: str
    message: str
    phase: Phase
    holds: bool = True
    """The condition's status. A drain that is refused says so in `Draining` and is none."""


@dataclass(frozen=True)
class Decision:
    """What one concern wants done, and what it says."""

    actions: tuple[Action, ...] = ()
    notes: tuple[Note, ...] = ()
    disrupts: bool = False
    """It takes a node out of service, has just done so, or is about to: nobody else may."""


NOTHING: Final = Decision()


def joined(decisions: Iterable[Decision]) -> Decision:
    """Several as one."""
    several = tuple(decisions)
    return Decision(
        tuple(action for decision in several for action in decision.actions),
        tuple(note for decision in several for note in decision.notes),
        any(decision.disrupts for decision in several),
    )


def progress(reason: str, message: str, phase: Phase) -> Note:
    """It goes on by itself."""
    return Note("Progressing", reason, message, phase)


def problem(reason: str, message: str) -> Note:
    """Somebody has to do something, or to wait for what the operator has no hand in."""
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
