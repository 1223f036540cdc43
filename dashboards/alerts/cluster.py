"""Alerts about links, clocks and copies."""

from __future__ import annotations

from typing import Final

from dashboards import uids
from dashboards.alerts.alert import CLUSTER, NODE, Alert, Group, Severity


def _reached(*states: str) -> str:
    """The number of members that a node reaches, including itself, even if several Prometheus jobs scrape it."""
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
            f"Nodes of {CLUSTER} cannot reach {{{{ $labels.address }}}}",
            "{{ $value }} nodes have had no connection to it for two minutes. It gets no copies of new jobs, "
            "and jobs of which it holds copies stay in memory after their acknowledgement.",
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
            f"Nodes of {CLUSTER} are up but cannot reach each other",
            "Prometheus reads {{ $value }} nodes, and one of them reaches fewer. Both sides continue: jobs with"
            " copies on both sides may be delivered twice, and ADDJOB may fail with NOREPL.",
            uids.CLUSTER,
        ),
        Alert(
            "DisqueClockSkew",
            Severity.WARNING,
            "5m",
            "max by (namespace, cluster, instance, address) (disque_clock_skew_seconds) > 0.5",
            f"The clocks of {NODE} and {{{{ $labels.address }}}} differ",
            "They are {{ $value | humanizeDuration }} apart. Jobs of these nodes get out of order, and expire "
            "too early or too late.",
            uids.CLUSTER,
        ),
        Alert(
            "DisqueClockQuarantine",
            Severity.WARNING,
            "1m",
            "disque_clock_quarantine == 1",
            f"The clock of the Disque node {NODE} is too far ahead, and it accepts no new jobs",
            "It is ahead of the other nodes by more than cluster-max-clock-skew, so it refuses ADDJOB and claims with "
            "-CLOCK until its clock is right. Workers continue, and other nodes accept jobs.",
            uids.CLUSTER,
        ),
        Alert(
            "DisqueMembersUnproven",
            Severity.WARNING,
            "1h",
            "disque_cluster_links_unproven > 0",
            f"Members of the cluster did not prove the cluster secret to the Disque node {NODE}",
            "{{ $value }} members are accepted without the secret, because of cluster-secret-required no. Until all "
            "have it, every program that reaches the bus port can join the cluster.",
            uids.CLUSTER,
        ),
        Alert(
            "DisqueReplicationFailing",
            Severity.WARNING,
            "5m",
            "sum by (namespace, cluster) (rate(disque_replication_failures_total[5m])) > 0",
            f"{CLUSTER} rejects jobs because it cannot replicate them",
            "{{ $value | humanize }} ADDJOBs per second fail with NOREPL: too few nodes stored a copy in time. "
            "Producers must retry.",
            uids.CLUSTER,
        ),
        Alert(
            "DisqueFinishedJobsForgotten",
            Severity.WARNING,
            "0m",
            "increase(disque_finished_jobs_forgotten_early_total[5m]) > 0",
            f"The Disque node {NODE} forgets finished jobs too early",
            "It forgot the IDs of {{ $value | humanize }} finished jobs within half a minute. A copy that arrives "
            "later is delivered once more.",
            uids.CLUSTER,
        ),
        Alert(
            "DisqueUnderReplicated",
            Severity.WARNING,
            "5m",
            "max by (namespace, cluster) (disque_jobs_under_replicated) > 0",
            f"Jobs of {CLUSTER} have fewer copies than requested",
            "A node holds {{ $value | humanize }} unfinished jobs with fewer live copies than REPLICATE, and they have "
            "not been made again for five minutes. If the other holders are lost too, these jobs are lost.",
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
            f"Jobs of {CLUSTER} require more copies than there are nodes",
            "The highest REPLICATE of a job is {{ $value }}, but fewer nodes reach each other. New jobs with this "
            "REPLICATE fail with NOREPL.",
            uids.CLUSTER,
        ),
        Alert(
            "DisqueLinksOverflowing",
            Severity.WARNING,
            "0m",
            "sum by (namespace, cluster, instance) (increase(disque_cluster_links_overflowed_total[10m])) > 0",
            f"Another node reads too slowly from {NODE}",
            "{{ $value | humanize }} times within ten minutes a send buffer exceeded cluster-link-sendbuf-limit. Its "
            "messages were lost; the important ones are sent again.",
            uids.CLUSTER,
        ),
    ),
)
