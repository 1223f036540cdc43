"""Alerts about leaving nodes and the operator."""

from __future__ import annotations

from typing import Final

from dashboards import uids
from dashboards.alerts.alert import CLUSTER, NODE, Alert, Group, Severity, down

OPERATOR: Final = Group(
    "disque-operator",
    "Leaving nodes and the operator",
    (
        Alert(
            "DisqueDrainStuck",
            Severity.WARNING,
            "0m",
            "disque_leaving_jobs_left >= (disque_leaving_jobs_left offset 15m)\n"
            "and min_over_time(disque_leaving_jobs_left[15m]) > 0",
            f"The Disque node {NODE} is leaving but cannot transfer its jobs",
            "{{ $value | humanize }} jobs are left, no fewer than 15 minutes ago. Stopping the node now loses "
            "the jobs that have no copies.",
            uids.CLUSTER,
        ),
        Alert(
            "DisqueClusterDegraded",
            Severity.WARNING,
            "5m",
            'max by (namespace, cluster) (disque_operator_cluster_phase{phase="Degraded"}) == 1',
            f"{CLUSTER} is Degraded and needs human intervention",
            "The operator cannot repair it. The condition Degraded says what is wrong and what to do.",
            uids.OPERATOR,
        ),
        Alert(
            "DisqueClusterNotReady",
            Severity.WARNING,
            "15m",
            'max by (namespace, cluster) (disque_operator_cluster_condition{condition="Ready"}) == 0\n'
            "unless on (namespace, cluster) "
            'disque_operator_cluster_phase{phase=~"Paused|Hibernating|Hibernated"} == 1',
            f"{CLUSTER} has not been Ready for 15 minutes",
            "Not all of its pods are ready, or they do not form one cluster. The condition Ready says what is missing.",
            uids.OPERATOR,
        ),
        Alert(
            "DisqueNotExposed",
            Severity.WARNING,
            "30m",
            'max by (namespace, cluster) (disque_operator_cluster_condition{condition="Exposed"}) == 0\n'
            "unless on (namespace, cluster) "
            'disque_operator_cluster_phase{phase=~"Paused|Hibernating|Hibernated"} == 1',
            f"Clients outside of Kubernetes cannot reach all members of {CLUSTER}",
            "For 30 minutes a member has had no external address, or the certificate has not had it. The condition "
            "Exposed says which one, and why.",
            uids.OPERATOR,
        ),
        Alert(
            "DisqueResizeFailing",
            Severity.WARNING,
            "15m",
            "max by (namespace, cluster, reason) (disque_operator_cluster_reason{"
            'reason=~"VolumeNotExpandable|VolumeNotShrinkable|ResizeFailed|FileSystemResizePending"}) == 1',
            f"Volumes of {CLUSTER} are not resized: {{{{ $labels.reason }}}}",
            "For 15 minutes the volumes have not had the size of the spec. The conditions Degraded and Progressing say "
            "which ones, and why.",
            uids.OPERATOR,
        ),
        Alert(
            "DisqueBackupTooOld",
            Severity.WARNING,
            "10m",
            'max by (namespace, cluster) (disque_operator_cluster_reason{condition="BackedUp",reason="TooOld"}) == 1',
            f"{CLUSTER} has no recent backup",
            "No scheduled backup was completed for longer than spec.backup.maxAgeSeconds. The condition BackedUp says "
            "why the last attempt failed.",
            uids.OPERATOR,
        ),
        Alert(
            "DisqueBackupFailed",
            Severity.WARNING,
            "0m",
            "max by (namespace, cluster) "
            '(disque_operator_cluster_reason{condition="BackedUp",reason="LastFailed"}) == 1',
            f"The last scheduled backup of {CLUSTER} failed",
            "All attempts failed. The next one is made by the schedule. The condition BackedUp says why it failed.",
            uids.OPERATOR,
        ),
        Alert(
            "DisqueMembersMissing",
            Severity.WARNING,
            "15m",
            'max by (namespace, cluster) (disque_operator_cluster_members{state="wanted"})\n'
            '- max by (namespace, cluster) (disque_operator_cluster_members{state="ready"}) > 0\n'
            "unless on (namespace, cluster) "
            'disque_operator_cluster_phase{phase=~"Paused|Hibernating|Hibernated"} == 1',
            f"Members of {CLUSTER} have been missing for 15 minutes",
            "{{ $value }} fewer than requested are ready.",
            uids.OPERATOR,
        ),
        Alert(
            "DisqueUpgradeStuck",
            Severity.WARNING,
            "15m",
            'max by (namespace, cluster) (disque_operator_cluster_phase{phase=~"Creating|Growing|Upgrading"}) == 1\n'
            'unless max by (namespace, cluster) (changes(disque_operator_cluster_members{state="ready"}[15m])) > 0',
            f"A change of {CLUSTER} makes no progress",
            "It is being created, scaled up or upgraded, and no member has stopped or started for 30 minutes.",
            uids.OPERATOR,
        ),
        Alert(
            "DisqueOperatorDown",
            Severity.WARNING,
            "5m",
            down("disque-operator", "disque_operator_build_info"),
            f"The Disque operator {NODE} is down",
            "Clusters continue without it, and Kubernetes restarts pods. Nothing is scaled, upgraded or repaired.",
            uids.OPERATOR,
        ),
        Alert(
            "DisqueOperatorAbsent",
            Severity.WARNING,
            "10m",
            "group by (namespace, cluster) (disque_build_info)\n"
            "and on (namespace, cluster) (\n"
            "  group by (namespace, cluster) (max_over_time(disque_operator_cluster_members[1d]))\n"
            '  or group by (namespace, cluster) (max_over_time(ALERTS{alertname="DisqueOperatorAbsent"}[15m]))\n'
            ")\n"
            "unless on (namespace, cluster) disque_operator_cluster_members",
            f"No operator manages {CLUSTER} any more",
            "Its nodes run, but no operator reports it: the operator was removed, Prometheus no "
            "longer finds it, or it no "
            "longer watches this namespace. Nothing is scaled, upgraded or repaired.",
            uids.OPERATOR,
        ),
        Alert(
            "DisqueOperatorIdle",
            Severity.WARNING,
            "10m",
            "max by (job) (disque_operator_lease_held) == 0\n"
            "or\n"
            "sum by (job) (increase(disque_operator_reconcile_seconds_count[10m])) == 0",
            "The Disque operator is up but idle",
            "For ten minutes none of its pods has held the Lease, or it has reconciled no cluster although "
            "there are some. Clusters continue; nothing is scaled, upgraded or repaired.",
            uids.OPERATOR,
        ),
        Alert(
            "DisqueOperatorErrors",
            Severity.WARNING,
            "5m",
            "sum by (namespace, cluster) (increase(disque_operator_reconcile_errors_total[15m])) > 3",
            f"The Disque operator repeatedly fails to reconcile {CLUSTER}",
            "{{ $value | humanize }} reconciliations failed within 15 minutes. The condition ReconcileSuccess "
            "says why.",
            uids.OPERATOR,
        ),
        Alert(
            "DisqueOperatorWriting",
            Severity.WARNING,
            "0m",
            "min_over_time((\n"
            '  sum by (namespace, job, kind) (increase(disque_operator_writes_total{verb="apply"}[10m]))\n'
            ")[1h:10m]) > 5",
            "The Disque operator writes {{ $labels.kind }} objects repeatedly",
            "For an hour it has changed them more than {{ $value | humanize }} times in every ten "
            "minutes. Another program "
            "changes them back, such as a mutating webhook.",
            uids.OPERATOR,
        ),
        Alert(
            "DisqueFieldReverted",
            Severity.WARNING,
            "0m",
            "sum by (namespace, cluster, kind) (increase(disque_operator_reverts_total[30m])) > 3",
            f"Another program changes a {{{{ $labels.kind }}}} of {CLUSTER} back",
            "A field of it was changed back {{ $value | humanize }} times within 30 minutes, each time after the "
            "operator had applied it.",
            uids.OPERATOR,
        ),
    ),
)
