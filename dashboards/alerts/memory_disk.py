"""Alerts about memory and the append only file."""

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
            "For five minutes it has been above 75 % of maxmemory (level {{ $value }}): it keeps no new jobs, other "
            "nodes have to. Above 100 % jobs are refused.",
            uids.MEMORY_DISK,
        ),
        Alert(
            "DisqueMemoryCritical",
            Severity.CRITICAL,
            "1m",
            "disque_memory_level >= 3",
            f"The Disque node {NODE} refuses jobs: its memory is full",
            "Producers get -OOM. Workers go on, and each job that is done makes room.",
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
            "It grew in the last half hour so that it will use {{ $value | humanize1024 }}B in an hour, more than "
            "maxmemory.",
            uids.MEMORY_DISK,
        ),
        Alert(
            "DisqueJobsEvicted",
            Severity.WARNING,
            "0m",
            "sum by (namespace, cluster, instance) (increase(disque_jobs_evicted_total[10m])) > 0",
            f"The Disque node {NODE} forgets jobs for want of memory",
            "{{ $value | humanize }} within ten minutes: acknowledgements, so that a job may come once more, and "
            "at-most-once jobs that were delivered. Jobs that wait are never forgotten.",
            uids.MEMORY_DISK,
        ),
        Alert(
            "DisqueAOFErrors",
            Severity.CRITICAL,
            "1m",
            "disque_aof_failed == 1",
            f"The Disque node {NODE} can not write its append only file",
            "It refuses new jobs with -MISCONF until it can. Workers go on.",
            uids.MEMORY_DISK,
        ),
        Alert(
            "DisqueAOFRewriteFailing",
            Severity.WARNING,
            "15m",
            "disque_aof_last_rewrite_ok == 0 and disque_aof_enabled == 1",
            f"The Disque node {NODE} can not write its append only file anew",
            "The file is complete, but it grows with every job that was ever there until the disk is full.",
            uids.MEMORY_DISK,
        ),
        Alert(
            "DisqueAOFSlowFsync",
            Severity.WARNING,
            "10m",
            "histogram_quantile(0.99, sum by (namespace, cluster, instance, le) "
            "(rate(disque_aof_fsync_duration_seconds_bucket[10m]))) > 1",
            f"The disk of the Disque node {NODE} is slow",
            "One sync in a hundred takes over {{ $value | humanizeDuration }}. With appendfsync always producers wait "
            "for it; with everysec more than a second may be lost when the power goes.",
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
            "{{ $labels.persistentvolumeclaim }} has {{ $value | humanizePercentage }} left. The append only file "
            "wants twice the space of the jobs while it is written anew; when the disk is full new jobs are refused.",
            uids.MEMORY_DISK,
        ),
    ),
)
