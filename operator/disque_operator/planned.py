"""What `plan` says: what to do now, what the status is, when to look again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from disque_operator.actions import Action
from disque_operator.apivalues import Json

SOON_S = 2.0
"""While something is going on."""
IDLE_S = 30.0
"""While all is well: changes of objects wake the loop, changes within nodes are found by looking."""


@dataclass(frozen=True)
class Event:
    """Told once, on the transition: of the resource, in `kubectl describe`."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True)
class Plan:
    """What comes next."""

    actions: tuple[Action, ...] = ()
    status: Json = field(default_factory=dict)
    """The whole status; written only when it differs from what is there by more than a figure that moved a little."""
    events: tuple[Event, ...] = ()
    again_s: float = IDLE_S
