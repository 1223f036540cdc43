"""Alerts about single nodes: availability, event loop, connections."""

from __future__ import annotations

from typing import Final

from dashboards import uids
from dashboards.alerts.alert import NODE, Alert, Group, Severity, down

NODES: Final = Group(
    "disque-nodes",
    "Nodes",
    (
        Alert(
            "DisqueDown",
            Severity.CRITICAL,
            "1m",
            down("disque", "disque_build_info"),
            f"The Disque node {NODE} is down",
            "Prometheus could not scrape it for a minute: it is down, hangs or is unreachable. Its clients use "
            "other nodes. Jobs with copies on other nodes are delivered again after their retry time.",
            uids.CLUSTER,
        ),
        Alert(
            "DisqueNotReady",
            Severity.WARNING,
            "10m",
            "disque_ready == 0 unless disque_leaving == 1",
            f"The Disque node {NODE} is up but accepts no new jobs",
            "For ten minutes it has been loading its file, shutting down, or rejecting jobs because of its "
            "disk or its clock. The page /readyz gives the reason.",
            uids.CLUSTER,
        ),
        Alert(
            "DisqueRestarting",
            Severity.WARNING,
            "0m",
            "changes(disque_start_time_seconds[15m]) > 2",
            f"The Disque node {NODE} restarts repeatedly",
            "It started {{ $value }} times within 15 minutes. Its log gives the reason.",
            uids.OVERVIEW,
        ),
        Alert(
            "DisqueEventLoopSlow",
            Severity.WARNING,
            "10m",
            "histogram_quantile(0.99, sum by (namespace, cluster, instance, le) "
            "(rate(disque_event_loop_lag_seconds_bucket[5m]))) > 0.25",
            f"The event loop of the Disque node {NODE} is slow",
            "The 99th percentile of its lag is {{ $value | humanizeDuration }}. No client is served for that time.",
            uids.OVERVIEW,
        ),
        Alert(
            "DisqueConnectionChurn",
            Severity.WARNING,
            "15m",
            "rate(disque_connections_received_total[5m]) > 50",
            f"Clients of the Disque node {NODE} reconnect too often",
            "{{ $value | humanize }} new connections per second: a program connects for each job, or cannot "
            "stay connected. A connection costs more than adding a job.",
            uids.OVERVIEW,
        ),
        Alert(
            "DisqueConnectionsRefused",
            Severity.WARNING,
            "0m",
            "increase(disque_rejected_connections_total[5m]) > 0",
            f"The Disque node {NODE} rejects connections",
            "It rejected {{ $value | humanize }} connections within five minutes, because of maxclients or its "
            "limit of open files.",
            uids.OVERVIEW,
        ),
        Alert(
            "DisqueCertificateExpiring",
            Severity.WARNING,
            "1h",
            "disque_tls_certificate_expiry_timestamp_seconds - time() < 7 * 86400",
            f"The TLS certificate of the Disque node {NODE} expires soon",
            "It expires in {{ $value | humanizeDuration }}. After that, clients that verify it cannot connect.",
            uids.OVERVIEW,
        ),
        Alert(
            "DisqueLoginsFailing",
            Severity.WARNING,
            "0m",
            "increase(disque_logins_failed_total[5m]) > 20",
            f"Logins to the Disque node {NODE} fail",
            "{{ $value | humanize }} logins within five minutes had a wrong user or password. A client has an old "
            "password, or somebody guesses.",
            uids.OVERVIEW,
        ),
        Alert(
            "DisqueAuditRecordsLost",
            Severity.WARNING,
            "0m",
            "increase(disque_audit_records_lost_total[5m]) > 0",
            f"The Disque node {NODE} loses records of its audit log",
            "{{ $value | humanize }} records within five minutes were not written, because the disk was full, failed, "
            "or was too slow. The node serves its clients without them.",
            uids.OVERVIEW,
        ),
        Alert(
            "DisqueFdNearLimit",
            Severity.WARNING,
            "5m",
            "process_open_fds / process_max_fds > 0.85 and on (job, namespace, instance) disque_build_info",
            f"The Disque node {NODE} is running out of file descriptors",
            "{{ $value | humanizePercentage }} are in use. Without free ones it accepts no new clients.",
            uids.OVERVIEW,
        ),
    ),
)
