"""Alerts about the operator, and about what it does."""

from __future__ import annotations

from typing import Final

from dashboards import uids
from dashboards.alerts.alert import CLUSTER, NODE, Alert, Group, Severity

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
            f"The Disque node {NODE} leaves, and can not get rid of its jobs",
            "{{ $value | humanize }} jobs are left, no fewer than 15 minutes ago. The node can not be stopped without "
            "losing what has no copies.",
            uids.CLUSTER,
        ),
        Alert(
            "DisqueClusterDegraded",
            Severity.WARNING,
            "5m",
            'max by (namespace, cluster) (disque_operator_cluster_phase{phase="Degraded"}) == 1',
            f"{CLUSTER} needs somebody: it is Degraded",
            "The operator can not put right what is wrong. The condition Degraded says what, and what to do.",
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
            "{{ $value }} fewer than wanted are ready.",
            uids.OPERATOR,
        ),
        Alert(
            "DisqueUpgradeStuck",
            Severity.WARNING,
            "15m",
            'max by (namespace, cluster) (disque_operator_cluster_phase{phase=~"Creating|Growing|Upgrading"}) == 1\n'
            'unless max by (namespace, cluster) (changes(disque_operator_cluster_members{state="ready"}[15m])) > 0',
            f"A change of {CLUSTER} does not get on",
            "It is being created, grown or upgraded, and for half an hour no member has gone or come.",
            uids.OPERATOR,
        ),
        Alert(
            "DisqueOperatorDown",
            Severity.WARNING,
            "5m",
            'up{job="disque-operator"} == 0',
            f"The Disque operator {NODE} does not answer",
            "Clusters serve on without it, and pods come back; nothing is grown, upgraded or healed.",
            uids.OPERATOR,
        ),
        Alert(
            "DisqueOperatorIdle",
            Severity.WARNING,
            "10m",
            "max by (job) (disque_operator_lease_held) == 0\n"
            "or\n"
            "sum by (job) (increase(disque_operator_reconcile_seconds_count[10m])) == 0",
            "The Disque operator runs and does nothing",
            "For ten minutes no pod of it has held the Lease, or it has looked at no cluster though there are some. "
            "Clusters serve on; nothing is grown, upgraded or healed.",
            uids.OPERATOR,
        ),
        Alert(
            "DisqueOperatorErrors",
            Severity.WARNING,
            "5m",
            "sum by (namespace, cluster) (increase(disque_operator_reconcile_errors_total[15m])) > 3",
            f"The Disque operator fails again and again with {CLUSTER}",
            "{{ $value | humanize }} of its rounds failed within 15 minutes. The condition ReconcileSuccess says why.",
            uids.OPERATOR,
        ),
    ),
)
