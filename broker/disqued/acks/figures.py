"""What INFO shows of acknowledgements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.core.runtime.state import NodeState

if TYPE_CHECKING:
    from disqued.core.telemetry.fields import Fields


def figures(state: NodeState) -> Fields:
    """Jobs that wait for other nodes to confirm, and how often that was tried."""
    stats = state.stats
    return [
        ("acked_jobs", state.lifecycle.acked_jobs),
        ("ack_collections", stats.collections),
        ("dummy_acks_made", stats.dummy_acks_made),
        ("dummy_acks_collected", stats.dummy_acks_collected),
        ("acks_for_others", stats.acks_for_others),
    ]
