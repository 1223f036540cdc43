"""Alerts about nodes among each other: links, clocks, copies."""

from __future__ import annotations

from typing import Final

from dashboards import uids
from dashboards.alerts.alert import CLUSTER, NODE, Alert, Group, Severity


def _reached(*states: str) -> str:
    """How many members a node reaches, itself counted; once, though several jobs of Prometheus may read it."""
    choice = "|".join(states)
    return (
        "sum by (namespace, cluster, instance) (\n"
        f'    max by (namespace, cluster, instance, state) (disque_cluster_nodes{{state=~"{choice}"}})\n'
        "  ) + 1"
    )


BETWEEN: Final = Group(
    "disque-cluster",
    "Cluster",
    (
        Alert(
            "DisqueNodeUnreachable",
            Severity.WARNING,
            "2m",
            "count by (namespace, cluster, address) (disque_cluster_link_up == 0)",
            f"Nodes of {CLUSTER} do not reach {{{{ $labels.address }}}}",
            "{{ $value }} of its nodes have had no connection to it for two minutes. Jobs whose copies it has are not "
            "collected, and it takes no copies of new ones.",
            uids.CLUSTER,
        ),
        Alert(
            "DisqueClusterPartitioned",
            Severity.CRITICAL,
            "2m",
            "count by (namespace, cluster) (max by (namespace, cluster, instance) (disque_cluster_size) > 1)\n"
            "> on (namespace, cluster) min by (namespace, cluster) (\n"
            f"  {_reached('connected', 'leaving')}\n"
            "  and on (namespace, cluster, instance) disque_cluster_size > 1\n"
            ")",
            f"Nodes of {CLUSTER} run, but do not reach each other",
            "{{ $value }} nodes answer Prometheus, and one of them reaches fewer. Both sides go on: jobs that have "
            "copies on both may be delivered twice, and REPLICATE may be refused.",
            uids.CLUSTER,
        ),
        Alert(
            "DisqueClockSkew",
            Severity.WARNING,
            "5m",
            "max by (namespace, cluster, instance, address) (disque_clock_skew_seconds) > 0.5",
            f"The clocks of {NODE} and {{{{ $labels.address }}}} differ",
            "They are {{ $value | humanizeDuration }} apart. Jobs of the one are put into order as if they were older "
            "or younger, and expire by the clock of the node that has them.",
            uids.CLUSTER,
        ),
        Alert(
            "DisqueReplicationFailing",
            Severity.WARNING,
            "5m",
            "sum by (namespace, cluster) (rate(disque_replication_failures_total[5m])) > 0",
            f"Jobs are refused in {CLUSTER} because copies can not be made",
            "{{ $value | humanize }} ADDJOBs per second got NOREPL: not enough nodes took a copy in time. Producers "
            "have to try again.",
            uids.CLUSTER,
        ),
        Alert(
            "DisqueUnderReplicated",
            Severity.WARNING,
            "5m",
            "sum by (namespace, cluster) (increase(disque_async_copies_missing_total[10m])) > 0",
            f"Jobs of {CLUSTER} have fewer copies than they asked for",
            "{{ $value | humanize }} copies of jobs that were added with ASYNC were never on their way within ten "
            "minutes. If the node that has such a job is lost, the job may be.",
            uids.CLUSTER,
        ),
        Alert(
            "DisqueTooFewMembers",
            Severity.WARNING,
            "5m",
            "max by (namespace, cluster) (disque_max_replicate)\n"
            "> max by (namespace, cluster) (\n"
            f"  {_reached('connected')}\n"
            ")",
            f"Jobs of {CLUSTER} want more copies than there are nodes",
            "The highest REPLICATE of a job is {{ $value }}, and fewer nodes reach each other. New jobs like it are "
            "refused with NOREPL.",
            uids.CLUSTER,
        ),
        Alert(
            "DisqueLinksOverflowing",
            Severity.WARNING,
            "0m",
            "sum by (namespace, cluster, instance) (increase(disque_cluster_links_overflowed_total[10m])) > 0",
            f"Another node takes too slowly what {NODE} sends",
            "{{ $value | humanize }} times within ten minutes more waited for a node than cluster-link-sendbuf-limit "
            "allows. What waited was lost, and is repeated where it matters.",
            uids.CLUSTER,
        ),
    ),
)
