"""Makes lost copies of jobs again: of nodes that come back without their jobs, that fail, or that are forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.core.runtime.subsystem import Subsystem
from disqued.repair import comparison, dataid
from disqued.repair.counters import COUNTERS
from disqued.repair.metrics import METRICS
from disqued.repair.room import NAME, RepairRoom, repair_of

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState
    from disqued.core.telemetry.fields import Fields


def _info(state: NodeState) -> Fields:
    """The state for INFO."""
    room = repair_of(state)
    return [
        (f"repair_{name.replace('-', '_')}", value)
        for name, value in room.repair_status(now=False)
        if name not in {"enabled", "done"}
    ]


SUBSYSTEM = Subsystem(
    NAME,
    RepairRoom,
    messages=(dataid.MESSAGE, comparison.DIGEST, comparison.CELL),
    counters=COUNTERS,
    info=_info,
    metrics=METRICS,
)
