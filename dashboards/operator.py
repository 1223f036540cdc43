"""The operator: the state of its clusters, and its own health."""

from __future__ import annotations

from typing import Final

from dashboards import uids
from dashboards.model import BAD, HEALTHY, OF_OPERATOR, RISK, Board, Kind, Panel, Query, Row, stat

_ROUND: Final = "disque_operator_reconcile_seconds"

_NOW: Final = Row(
    "Now",
    (
        stat(
            "Clusters",
            "The number of DisqueClusters that the operator manages.",
            "short",
            "sum(disque_operator_cluster_phase{<clusters>})",
            empty="there are no clusters",
        ),
        stat(
            "Degraded clusters",
            "Clusters in the phase Degraded. Run kubectl disque status to see what to do.",
            "short",
            'sum(disque_operator_cluster_phase{<clusters>,phase="Degraded"})',
            steps=((1, BAD),),
            empty="there are no clusters",
        ),
        stat(
            "Missing members",
            "Members that the spec asks for and that are not ready.",
            "short",
            'sum(disque_operator_cluster_members{<clusters>,state="wanted"}) '
            '- sum(disque_operator_cluster_members{<clusters>,state="ready"})',
            steps=((1, RISK),),
            empty="there are no clusters",
        ),
        stat(
            "Active operators",
            "The pod that holds the Lease is active. This is 1, however many pods the operator has.",
            "short",
            "sum(disque_operator_lease_held)",
            steps=((2, BAD),),
        ),
        stat(
            "Longest wait",
            "How long a cluster has been waiting for a worker. If it is more than a few seconds, increase the"
            " number of workers.",
            "s",
            "max(disque_operator_queue_oldest_seconds)",
            steps=((10, RISK), (60, BAD)),
        ),
        stat(
            "Failed reconciliations",
            "Failures in the last hour. The operator retries with increasing delays.",
            "short",
            "sum(increase(disque_operator_reconcile_errors_total{<clusters>}[1h]))",
            steps=((1, RISK),),
            empty="there are no clusters",
        ),
    ),
)

_CLUSTERS: Final = Row(
    "Clusters",
    (
        Panel(
            "Phases",
            "The phase of each cluster. Degraded needs human intervention.",
            "short",
            (
                Query(
                    'disque_operator_cluster_phase{<clusters>,phase!="Degraded"} == 1',
                    "{{namespace}}/{{cluster}}: {{phase}}",
                ),
                Query(
                    'disque_operator_cluster_phase{<clusters>,phase="Degraded"} * 2 == 2',
                    "{{namespace}}/{{cluster}}: Degraded",
                ),
            ),
            Kind.STATES,
            width=12,
            names=((1, "yes", HEALTHY), (2, "degraded", BAD)),
            empty="there are no clusters",
        ),
        Panel(
            "Members",
            "Members that are ready, and members that the spec asks for.",
            "short",
            (Query("disque_operator_cluster_members{<clusters>}", "{{namespace}}/{{cluster}} {{state}}"),),
            width=12,
            empty="there are no clusters",
        ),
        Panel(
            "Unhealthy conditions",
            "Ready, ClusterFormed, AllMembersReachable, SpecValid, ReconcileSuccess and Exposed (if present) should be "
            "true; Progressing, Draining and Degraded should be false.",
            "short",
            (
                Query(
                    "disque_operator_cluster_condition{<clusters>,"
                    'condition=~"Ready|ClusterFormed|AllMembersReachable|Exposed|SpecValid|ReconcileSuccess"} == 0',
                    "{{namespace}}/{{cluster}}: not {{condition}}",
                ),
                Query(
                    'disque_operator_cluster_condition{<clusters>,condition=~"Progressing|Draining|Degraded"} == 1',
                    "{{namespace}}/{{cluster}}: {{condition}}",
                ),
            ),
            Kind.STATES,
            width=12,
            names=((0, "unhealthy", RISK), (1, "so", RISK)),
            empty="all clusters are healthy",
        ),
        Panel(
            "Paused",
            "Clusters whose reconciliation is paused (spec.paused).",
            "short",
            (Query("disque_operator_paused{<clusters>} == 1", "{{namespace}}/{{cluster}}"),),
            Kind.STATES,
            width=12,
            names=((1, "paused", RISK),),
            empty="no cluster is paused",
        ),
        Panel(
            "Reasons",
            "Why each condition has its value, by cluster. docs/operations/kubernetes.md says what to do about each.",
            "short",
            (
                Query(
                    "sum by (namespace, cluster, condition, reason) (disque_operator_cluster_reason{<clusters>} == 1)",
                    "since the last change",
                ),
            ),
            Kind.TABLE,
            width=24,
            empty="there are no clusters",
        ),
        Panel(
            "Jobs left on draining pods",
            "The jobs move to the other members. If the line is flat, no member can take them.",
            "short",
            (Query("disque_operator_drain_jobs_left{<clusters>}", "{{namespace}}/{{cluster}}"),),
            width=12,
            empty="no pod is draining",
        ),
        Panel(
            "Estimated time until drained",
            "-1 while no jobs move.",
            "s",
            (Query("disque_operator_drain_seconds_left{<clusters>}", "{{namespace}}/{{cluster}}"),),
            width=12,
            empty="no pod is draining",
        ),
    ),
)

_BACKUPS: Final = Row(
    "Backups",
    (
        Panel(
            "Time since the last backup",
            "How long ago the last scheduled backup of each cluster was completed.",
            "s",
            (
                Query(
                    "time() - max by (namespace, cluster) "
                    "(disque_operator_backup_last_success_timestamp_seconds{<clusters>})",
                    "{{namespace}}/{{cluster}}",
                ),
            ),
            width=8,
            empty="no cluster has scheduled backups",
        ),
        Panel(
            "Jobs in the last backup",
            "Unfinished jobs in the last scheduled backup of each cluster.",
            "short",
            (
                Query(
                    "max by (namespace, cluster) (disque_operator_backup_last_jobs{<clusters>})",
                    "{{namespace}}/{{cluster}}",
                ),
            ),
            width=8,
            empty="no cluster has scheduled backups",
        ),
        Panel(
            "Size of the last backup",
            "Bytes of the last scheduled backup of each cluster.",
            "bytes",
            (
                Query(
                    "max by (namespace, cluster) (disque_operator_backup_last_bytes{<clusters>})",
                    "{{namespace}}/{{cluster}}",
                ),
            ),
            width=8,
            empty="no cluster has scheduled backups",
        ),
    ),
)

_ITSELF: Final = Row(
    "The operator itself",
    (
        Panel(
            "Reconciliations",
            "Reconciliations per second, and how many of them failed.",
            "ops",
            (
                Query(f"sum(rate({_ROUND}_count{{<clusters>}}[$__rate_interval]))", "rounds"),
                Query("sum(rate(disque_operator_reconcile_errors_total{<clusters>}[$__rate_interval]))", "failed"),
            ),
            empty="there are no clusters",
        ),
        Panel(
            "Duration of reconciliations",
            "The median and the 99th percentile.",
            "s",
            tuple(
                Query(
                    f"histogram_quantile({share}, sum by (le) (rate({_ROUND}_bucket{{<clusters>}}[$__rate_interval])))",
                    word,
                )
                for share, word in ((0.5, "median"), (0.99, "99 %"))
            ),
            empty="there are no clusters",
        ),
        Panel(
            "Waiting clusters",
            "Clusters that are due for reconciliation and wait for a worker.",
            "short",
            (Query("sum by (namespace, instance) (disque_operator_queue_length)", "{{instance}}"),),
        ),
        Panel(
            "Writes",
            "Write requests to Kubernetes per second. There are none while the clusters match their specs.",
            "ops",
            (Query("sum by (verb, kind) (rate(disque_operator_writes_total[$__rate_interval]))", "{{verb}} {{kind}}"),),
            empty="nothing was changed",
        ),
        Panel(
            "Requests to Kubernetes",
            "Requests per second by status code. 0 means no response.",
            "ops",
            (Query("sum by (code) (rate(disque_operator_api_requests_total[$__rate_interval]))", "{{code}}"),),
        ),
        Panel(
            "Broker commands and watch events",
            "Commands per second that change a broker, and watch events per second from Kubernetes.",
            "ops",
            (
                Query(
                    "sum by (command) (rate(disque_operator_broker_commands_total[$__rate_interval]))", "{{command}}"
                ),
                Query("sum by (kind) (rate(disque_operator_watch_events_total[$__rate_interval]))", "{{kind}} changed"),
            ),
            empty="nothing has changed",
        ),
        Panel(
            "Version",
            "The version of each operator pod, and whether it holds the Lease.",
            "short",
            (
                Query("sum by (namespace, instance, version) (disque_operator_build_info)", "pods"),
                Query("sum by (namespace, instance) (disque_operator_lease_held)", "acts"),
            ),
            Kind.TABLE,
            width=12,
        ),
        Panel(
            "Memory",
            "Resident memory of the operator's processes.",
            "bytes",
            (
                Query(
                    "process_resident_memory_bytes and on (job, namespace, instance) disque_operator_build_info",
                    "{{instance}}",
                ),
            ),
            width=12,
        ),
    ),
)

OPERATOR: Final = Board(
    uids.OPERATOR,
    "Disque / Operator",
    "The state of the operator's clusters, and the health of the operator.",
    OF_OPERATOR,
    (_NOW, _CLUSTERS, _BACKUPS, _ITSELF),
)
