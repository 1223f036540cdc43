"""What INFO shows of deliveries that several nodes could have made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.core.runtime.state import NodeState

if TYPE_CHECKING:
    from disqued.core.telemetry.fields import Fields


def figures(state: NodeState) -> Fields:
    """How often nodes that hold the same job kept each other from queueing it."""
    return [
        ("queued_ties_lost", state.stats.queued_ties_lost),
        ("requeues_averted", state.stats.requeues_averted),
    ]
