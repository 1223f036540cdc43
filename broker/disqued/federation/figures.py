"""What INFO shows of federation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.core.runtime.state import NodeState

if TYPE_CHECKING:
    from disqued.core.telemetry.fields import Fields


def figures(state: NodeState) -> Fields:
    """Jobs that came and went, and the queues that something is wanted of."""
    stats = state.stats
    return [
        ("jobs_imported", stats.jobs_imported),
        ("imported_at_most_once", stats.imported_at_most_once),
        ("jobs_exported", stats.jobs_exported),
        ("queues_asked_for", state.demand.needs),
        ("queues_wanted_elsewhere", state.demand.asks),
    ]
