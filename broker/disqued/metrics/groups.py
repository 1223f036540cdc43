"""Metrics of the Raft groups of ordered queues, from one scan of the groups and queues of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.telemetry.metric import gauge

if TYPE_CHECKING:
    from disqued.core.telemetry.metric import Metric
    from disqued.metrics.queues import QueueScan

METRICS: Final[tuple[Metric[QueueScan], ...]] = (
    gauge(
        "disque_ordered_groups",
        "Groups that this node has a replica of: ordered queues, and the catalog.",
        lambda scan: int(scan.groups.count),
    ),
    gauge(
        "disque_ordered_leaders",
        "Groups that this node leads.",
        lambda scan: int(scan.groups.led),
    ),
    gauge(
        "disque_ordered_groups_without_leader",
        "Groups with a replica here that have no leader, as far as this node knows.",
        lambda scan: int(scan.groups.without_leader),
    ),
    gauge(
        "disque_ordered_replicas_behind",
        "Replicas on other nodes that have not confirmed all entries of the groups that this node leads.",
        lambda scan: int(scan.groups.behind),
    ),
    gauge(
        "disque_ordered_replica_lag_entries",
        "Entries that are not confirmed by the replica that is furthest behind, of the groups that this node leads.",
        lambda scan: int(scan.groups.lag),
    ),
    gauge(
        "disque_ordered_overdue_seconds",
        "How long ago a lease or a delay in a queue led here should have ended; more than a second only while the "
        "leader cannot commit.",
        lambda scan: int(scan.groups.overdue_ms) / 1000,
    ),
)
