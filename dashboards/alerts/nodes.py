"""Alerts about single nodes: up, ready, fast enough, with room for clients."""

from __future__ import annotations

from typing import Final

from dashboards import uids
from dashboards.alerts.alert import NODE, Alert, Group, Severity

NODES: Final = Group(
    "disque-nodes",
    "Nodes",
    (
        Alert(
            "DisqueDown",
            Severity.CRITICAL,
            "1m",
            'up{job="disque"} == 0',
            f"The Disque node {NODE} does not answer",
            "Prometheus could not read its metrics for a minute: it is down, hangs, or can not be reached. Its clients "
            "go to other nodes; its jobs that have copies come back there after their retry time.",
            uids.CLUSTER,
        ),
        Alert(
            "DisqueNotReady",
            Severity.WARNING,
            "10m",
            "disque_ready == 0 unless disque_leaving == 1",
            f"The Disque node {NODE} runs, but serves no new jobs",
            "For ten minutes it has been loading its file, ending, or refusing jobs because of its disk. Its page "
            "/readyz says which.",
            uids.CLUSTER,
        ),
        Alert(
            "DisqueRestarting",
            Severity.WARNING,
            "0m",
            "changes(disque_start_time_seconds[15m]) > 2",
            f"The Disque node {NODE} restarts again and again",
            "It started {{ $value }} times within 15 minutes. What ends it stands in its log.",
            uids.OVERVIEW,
        ),
        Alert(
            "DisqueEventLoopSlow",
            Severity.WARNING,
            "10m",
            "histogram_quantile(0.99, sum by (namespace, cluster, instance, le) "
            "(rate(disque_event_loop_lag_seconds_bucket[5m]))) > 0.25",
            f"The Disque node {NODE} lets everybody wait",
            "One time in a hundred nobody is served for {{ $value | humanizeDuration }}. All clients notice it.",
            uids.OVERVIEW,
        ),
        Alert(
            "DisqueConnectionChurn",
            Severity.WARNING,
            "15m",
            "rate(disque_connections_received_total[5m]) > 50",
            f"Clients of the Disque node {NODE} connect all the time",
            "{{ $value | humanize }} new connections per second: some program connects for each job, or can not stay "
            "connected. Each costs more than adding a job.",
            uids.OVERVIEW,
        ),
        Alert(
            "DisqueConnectionsRefused",
            Severity.WARNING,
            "0m",
            "increase(disque_rejected_connections_total[5m]) > 0",
            f"The Disque node {NODE} refuses clients",
            "{{ $value | humanize }} connections within five minutes were more than maxclients or open files allow.",
            uids.OVERVIEW,
        ),
        Alert(
            "DisqueFdNearLimit",
            Severity.WARNING,
            "5m",
            'process_open_fds{job="disque"} / process_max_fds{job="disque"} > 0.85',
            f"The Disque node {NODE} runs out of open files",
            "{{ $value | humanizePercentage }} of the open files that it may have are in use. Without free ones it "
            "takes no new clients.",
            uids.OVERVIEW,
        ),
    ),
)
