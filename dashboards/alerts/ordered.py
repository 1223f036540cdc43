"""Alerts about ordered queues."""

from __future__ import annotations

from typing import Final

from dashboards import uids
from dashboards.alerts.alert import CLUSTER, NODE, Alert, Group, Severity

_QUEUE: Final = "namespace, cluster, queue"
_LARGEST_REST_BYTES: Final = 400_000_000
"""Twice the bound for the bytes of the log beyond twice what is needed: files wait to be rewritten and deleted."""

ORDERED: Final = Group(
    "disque-ordered",
    "Ordered queues",
    (
        Alert(
            "DisqueOrderedNoLeader",
            Severity.CRITICAL,
            "2m",
            "max by (namespace, cluster, instance) (disque_ordered_groups_without_leader) > 0",
            f"Ordered queues at the Disque node {NODE} have no leader",
            "For two minutes {{ $value | humanize }} of its groups have had none: it reaches less than a majority of "
            "their replicas. There, jobs are neither added to these queues nor taken from them (NOQUORUM).",
            uids.ORDERED,
        ),
        Alert(
            "DisqueOrderedReplicaBehind",
            Severity.WARNING,
            "10m",
            "max by (namespace, cluster, instance) (min_over_time(disque_ordered_replica_lag_entries[5m])) > 1000",
            f"Replicas of ordered queues led by the Disque node {NODE} are behind",
            "One has not confirmed {{ $value | humanize }} entries: its node is down, slow, or has lost its disk. "
            "While it is behind, the loss of another node may stop the queue.",
            uids.ORDERED,
        ),
        Alert(
            "DisqueOrderedElectionsHigh",
            Severity.WARNING,
            "5m",
            "sum by (namespace, cluster) (increase(disque_ordered_elections_total[30m]))\n"
            "> 5 * (max by (namespace, cluster) (disque_ordered_queues) + 1)",
            f"The leaders of ordered queues of {CLUSTER} change often",
            "{{ $value | humanize }} elections within 30 minutes are more than five for each queue: nodes restart, or "
            "do not hear each other for a second at a time. Each election stops its queue for a moment.",
            uids.ORDERED,
        ),
        Alert(
            "DisqueOrderedLogGrowing",
            Severity.WARNING,
            "15m",
            f"disque_ordered_log_bytes > 2 * disque_ordered_log_live_bytes + {_LARGEST_REST_BYTES}",
            f"The log of ordered queues of the Disque node {NODE} is larger than it should be",
            "It has {{ $value | humanize1024 }}B, more than twice what is needed: old files are not rewritten or "
            "deleted.",
            uids.ORDERED,
        ),
        Alert(
            "DisqueOrderedLogFailed",
            Severity.CRITICAL,
            "1m",
            "disque_ordered_writes_refused == 1",
            f"The Disque node {NODE} cannot write the log of ordered queues",
            "Its replicas confirm nothing. The queues are served while a majority of their replicas is on other nodes.",
            uids.ORDERED,
        ),
        Alert(
            "DisqueOrderedLeasesStuck",
            Severity.WARNING,
            "5m",
            f"sum by ({_QUEUE}) (min_over_time(disque_queue_leased_jobs[30m])) > 0\n"
            f"and sum by ({_QUEUE}) (min_over_time(disque_queue_jobs[30m])) > 0\n"
            f"and on ({_QUEUE}) disque_queue_replica_lag_entries\n"
            f"unless sum by ({_QUEUE}) (increase(disque_queue_jobs_out_total[30m])) > 0\n"
            f'unless max by ({_QUEUE}) (disque_queue_paused{{direction="out"}}) == 1\n'
            "or\n"
            "max by (namespace, cluster) (disque_ordered_overdue_seconds) > 60",
            "Leases of {{ with $labels.queue }}the ordered queue {{ . }}{{ else }}ordered queues{{ end }} do not end"
            f" in {CLUSTER}",
            "Either workers have had jobs of one queue for half an hour while others waited, and nothing was "
            "delivered, or leases and delays are not ended although their time is over, because a leader cannot "
            "commit.",
            uids.ORDERED,
        ),
        Alert(
            "DisqueOrderedMovesParked",
            Severity.WARNING,
            "0m",
            "sum by (namespace, cluster) (increase(disque_ordered_moves_parked_total[1h])) > 0",
            f"Jobs of ordered queues of {CLUSTER} cannot be moved",
            "For {{ $value | humanize }} dead letters or moved jobs, the target queue has confirmed nothing for an "
            "hour. They stay in their queue, which does not wait for them.",
            uids.ORDERED,
        ),
        Alert(
            "DisqueOrderedCatalogConflict",
            Severity.CRITICAL,
            "1m",
            "max by (namespace, cluster) (disque_ordered_catalog_conflict) == 1",
            f"Two catalogs of ordered queues have met in {CLUSTER}",
            "Members were joined that each had ordered queues of their own. The queues of both catalogs are served by "
            "the nodes that know them; QNEW and QDROP are refused.",
            uids.ORDERED,
        ),
    ),
)
