"""Metrics of queues with limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.bus import kinds
from disqued.core.queues.limiter import NOTHING, REASONS
from disqued.core.telemetry.metric import GAUGE, Metric, Sample, gauge
from disqued.rates.room import rates_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from disqued.core.runtime.state import NodeState
    from disqued.core.runtime.subsystem import NodeMetric, QueueMetric, QueueSeen


def _nodes_without(state: NodeState) -> int:
    """How many members deliver without limits."""
    peers = state.view.peers.values()
    return sum(not peer.in_handshake and not peer.features & kinds.FEATURE_TOKENS for peer in peers)


def _held_back(seen: QueueSeen) -> Iterator[Sample]:
    limiter = seen.queue.limiter
    if limiter is None:
        return
    why = limiter.holds_back(seen.now_ms)
    for number, reason in enumerate(REASONS):
        if number != NOTHING:
            yield ((reason.decode(),), int(number == why))


def _in_flight(seen: QueueSeen) -> Iterator[Sample]:
    limiter = seen.queue.limiter
    if limiter is not None and limiter.leases is not None:
        yield (), len(limiter.leases)


METRICS: Final[tuple[NodeMetric, ...]] = (
    gauge(
        "disque_nodes_without_limits",
        "Members that deliver jobs without the limits of their queues: nodes of the original, or of a release without "
        "them.",
        _nodes_without,
    ),
    gauge(
        "disque_limited_queues",
        "Queues on this node with a rate or a cap.",
        lambda state: len(rates_of(state).limiters),
    ),
)

QUEUE_METRICS: Final[tuple[QueueMetric, ...]] = (
    Metric(
        "disque_queue_held_back",
        GAUGE,
        "1 while clients of the node wait although the queue has jobs: for the rate, for jobs in flight, or because "
        "the node that grants tokens does not answer (home). Missing for a queue without limits.",
        _held_back,
        ("reason",),
    ),
    Metric(
        "disque_queue_in_flight_jobs",
        GAUGE,
        "Jobs in flight that the node delivered. Missing for a queue without `inflight`.",
        _in_flight,
    ),
)
