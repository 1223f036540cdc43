"""Metrics of the settings of queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.telemetry.metric import gauge
from disqued.settings.room import settings_of
from disqued.settings.sharing import FEATURE_SETTINGS

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState
    from disqued.core.runtime.subsystem import NodeMetric


def nodes_without(state: NodeState) -> int:
    """How many members ignore settings of queues."""
    return sum(not peer.in_handshake and not peer.features & FEATURE_SETTINGS for peer in state.view.peers.values())


METRICS: Final[tuple[NodeMetric, ...]] = (
    gauge(
        "disque_nodes_without_settings",
        "Members that ignore the settings of queues: nodes of the original, or of a release without QCONF.",
        nodes_without,
    ),
    gauge(
        "disque_queue_settings",
        "Settings of queues that this node knows, for names and patterns together.",
        lambda state: settings_of(state).entries.set_count,
    ),
    gauge(
        "disque_settings_differing_nodes",
        "Connected members whose settings differ from those of this node.",
        lambda state: settings_of(state).peers.differing,
    ),
)
