"""What the node counts about acknowledgements, for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.telemetry.metric import counter

if TYPE_CHECKING:
    from disqued.core.runtime.subsystem import NodeMetric

METRICS: Final[tuple[NodeMetric, ...]] = (
    counter(
        "disque_jobs_acked_total",
        "Jobs known here that clients of this node said are done (ACKJOB, FASTACK).",
        lambda state: int(state.stats.jobs_acked),
    ),
    counter(
        "disque_ack_collections_total",
        "Attempts to find out whether all holders of an acknowledged job know.",
        lambda state: int(state.stats.collections),
    ),
    counter(
        "disque_dummy_acks_made_total",
        "Acknowledgements of jobs that are not known here, kept until a holder is found.",
        lambda state: int(state.stats.dummy_acks_made),
    ),
    counter(
        "disque_dummy_acks_collected_total",
        "Those of them that all nodes answered.",
        lambda state: int(state.stats.dummy_acks_collected),
    ),
    counter(
        "disque_acks_for_others_total",
        "Acknowledgements that this node, which leaves, only passed on.",
        lambda state: int(state.stats.acks_for_others),
    ),
)
