"""Alerts about memory and the append-only file."""

from __future__ import annotations

from typing import Final

from dashboards import uids
from dashboards.alerts.alert import CLUSTER, NODE, Alert, Group, Severity

MEMORY_DISK: Final = Group(
    "disque-memory-disk",
    "Memory and disk",
    (
        Alert(
            "DisqueMemoryHigh",
            Severity.WARNING,
            "5m",
            "disque_memory_level >= 1",
            f"The memory of the Disque node {NODE} is nearly full",
            "It has been above 75 % of maxmemory for five minutes (level {{ $value }}) and stores new jobs on "
            "other nodes only. Above 100 % it rejects jobs.",
            uids.MEMORY_DISK,
        ),
        Alert(
            "DisqueMemoryCritical",
            Severity.CRITICAL,
            "1m",
            "disque_memory_level >= 3",
            f"The Disque node {NODE} is out of memory and rejects jobs",
            "Producers get -OOM. Workers continue, and each finished job frees memory.",
            uids.MEMORY_DISK,
        ),
        Alert(
            "DisqueMemoryFillingUp",
            Severity.WARNING,
            "10m",
            "predict_linear(disque_memory_used_bytes[30m], 3600) > (disque_memory_max_bytes > 0)\n"
            "and disque_memory_used_bytes > 0.5 * disque_memory_max_bytes\n"
            "and disque_memory_level < 1",
            f"The Disque node {NODE} will be full within an hour",
            "At the rate of the last 30 minutes it will use {{ $value | humanize1024 }}B in an hour, more than "
            "maxmemory.",
            uids.MEMORY_DISK,
        ),
        Alert(
            "DisqueJobsEvicted",
            Severity.WARNING,
            "0m",
            "sum by (namespace, cluster, instance) (increase(disque_jobs_evicted_total[10m])) > 0",
            f"The Disque node {NODE} evicts jobs to free memory",
            "{{ $value | humanize }} within ten minutes. It evicts acknowledgements, so jobs may be delivered "
            "again, and delivered at-most-once jobs. It never evicts waiting jobs.",
            uids.MEMORY_DISK,
        ),
        Alert(
            "DisqueAOFErrors",
            Severity.CRITICAL,
            "1m",
            "disque_aof_failed == 1",
            f"The Disque node {NODE} cannot write its append-only file",
            "It rejects new jobs with -MISCONF until it can. Workers continue.",
            uids.MEMORY_DISK,
        ),
        Alert(
            "DisqueAOFRewriteFailing",
            Severity.WARNING,
            "15m",
            "disque_aof_last_rewrite_ok == 0 and disque_aof_enabled == 1",
            f"The Disque node {NODE} cannot rewrite its append-only file",
            "The file is complete, but it grows with every job until the disk is full.",
            uids.MEMORY_DISK,
        ),
        Alert(
            "DisqueAOFSlowFsync",
            Severity.WARNING,
            "10m",
            "histogram_quantile(0.99, sum by (namespace, cluster, instance, le) "
            "(rate(disque_aof_fsync_duration_seconds_bucket[10m]))) > 1",
            f"The disk of the Disque node {NODE} is slow",
            "One fsync in a hundred takes over {{ $value | humanizeDuration }}. With appendfsync always, "
            "producers wait for it; with everysec, a power loss may cost more than a second of changes.",
            uids.MEMORY_DISK,
        ),
        Alert(
            "DisqueVolumeFillingUp",
            Severity.WARNING,
            "5m",
            'label_replace(kubelet_volume_stats_available_bytes{persistentvolumeclaim=~"data-.+-[0-9]+"}\n'
            "  / kubelet_volume_stats_capacity_bytes < 0.2,\n"
            '  "cluster", "$1", "persistentvolumeclaim", "data-(.+)-[0-9]+")\n'
            "and on (namespace, cluster) disque_operator_cluster_phase",
            f"A volume of {CLUSTER} is nearly full",
            "{{ $labels.persistentvolumeclaim }} has {{ $value | humanizePercentage }} left. A rewrite needs "
            "space for a second append-only file. When the disk is full, new jobs are rejected.",
            uids.MEMORY_DISK,
        ),
    ),
)
