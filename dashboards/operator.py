"""The operator: how its clusters are, and how it does itself."""

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
            "DisqueClusters that the operator looks after.",
            "short",
            "sum(disque_operator_cluster_phase{<clusters>})",
            empty="there are no clusters",
        ),
        stat(
            "Clusters that need somebody",
            "In the phase Degraded: kubectl disque status says what is to be done.",
            "short",
            'sum(disque_operator_cluster_phase{<clusters>,phase="Degraded"})',
            steps=((1, BAD),),
            empty="there are no clusters",
        ),
        stat(
            "Members missing",
            "Members that are wanted and not ready.",
            "short",
            'sum(disque_operator_cluster_members{<clusters>,state="wanted"}) '
            '- sum(disque_operator_cluster_members{<clusters>,state="ready"})',
            steps=((1, RISK),),
            empty="there are no clusters",
        ),
        stat(
            "Operators that act",
            "1, however many pods the operator has: the one with the Lease.",
            "short",
            "sum(disque_operator_lease_held)",
            steps=((2, BAD),),
        ),
        stat(
            "Oldest that waits",
            "How long a cluster has been waiting for a worker. More than a few seconds: raise the number of workers.",
            "s",
            "max(disque_operator_queue_oldest_seconds)",
            steps=((10, RISK), (60, BAD)),
        ),
        stat(
            "Rounds that failed",
            "In the last hour. They are tried again, less and less often.",
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
            "What each cluster was busy with. Degraded: somebody has to do something.",
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
            names=((1, "yes", HEALTHY), (2, "needs somebody", BAD)),
            empty="there are no clusters",
        ),
        Panel(
            "Members",
            "Ready, and wanted.",
            "short",
            (Query("disque_operator_cluster_members{<clusters>}", "{{namespace}}/{{cluster}} {{state}}"),),
            width=12,
            empty="there are no clusters",
        ),
        Panel(
            "Conditions that are not as they should be",
            "Ready, ClusterFormed, AllMembersReachable, SpecValid and ReconcileSuccess should be true, Progressing, "
            "Draining and Degraded not.",
            "short",
            (
                Query(
                    "disque_operator_cluster_condition{<clusters>,"
                    'condition=~"Ready|ClusterFormed|AllMembersReachable|SpecValid|ReconcileSuccess"} == 0',
                    "{{namespace}}/{{cluster}}: not {{condition}}",
                ),
                Query(
                    'disque_operator_cluster_condition{<clusters>,condition=~"Progressing|Draining|Degraded"} == 1',
                    "{{namespace}}/{{cluster}}: {{condition}}",
                ),
            ),
            Kind.STATES,
            width=12,
            names=((0, "not so", RISK), (1, "so", RISK)),
            empty="all clusters are well",
        ),
        Panel(
            "Paused",
            "Clusters that the operator only looks at (spec.paused).",
            "short",
            (Query("disque_operator_paused{<clusters>} == 1", "{{namespace}}/{{cluster}}"),),
            Kind.STATES,
            width=12,
            names=((1, "paused", RISK),),
            empty="no cluster is paused",
        ),
        Panel(
            "Jobs left of pods that are emptied",
            "They go to the other members. A level line: nobody can take them.",
            "short",
            (Query("disque_operator_drain_jobs_left{<clusters>}", "{{namespace}}/{{cluster}}"),),
            width=12,
            empty="no pod is emptied",
        ),
        Panel(
            "Time until they are empty",
            "-1 while nothing moves.",
            "s",
            (Query("disque_operator_drain_seconds_left{<clusters>}", "{{namespace}}/{{cluster}}"),),
            width=12,
            empty="no pod is emptied",
        ),
    ),
)

_ITSELF: Final = Row(
    "The operator itself",
    (
        Panel(
            "Rounds",
            "Per second: look at a cluster, decide, act. And those that failed.",
            "ops",
            (
                Query(f"sum(rate({_ROUND}_count{{<clusters>}}[$__rate_interval]))", "rounds"),
                Query("sum(rate(disque_operator_reconcile_errors_total{<clusters>}[$__rate_interval]))", "failed"),
            ),
            empty="there are no clusters",
        ),
        Panel(
            "Time of rounds",
            "Half of them are faster than the median; one in a hundred is slower than the other line.",
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
            "Clusters that wait",
            "Clusters that are due and wait for a worker.",
            "short",
            (Query("sum by (instance) (disque_operator_queue_length)", "{{instance}}"),),
        ),
        Panel(
            "Writes",
            "Requests per second that change something in Kubernetes. None while all is well.",
            "ops",
            (Query("sum by (verb, kind) (rate(disque_operator_writes_total[$__rate_interval]))", "{{verb}} {{kind}}"),),
            empty="nothing was changed",
        ),
        Panel(
            "Requests to Kubernetes",
            "Per second, by their status; 0 is no answer.",
            "ops",
            (Query("sum by (code) (rate(disque_operator_api_requests_total[$__rate_interval]))", "{{code}}"),),
        ),
        Panel(
            "Commands to brokers, changes told of",
            "Commands per second that change something in a broker, and changes that Kubernetes told of.",
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
            "Of each pod of the operator, with whether it holds the Lease.",
            "short",
            (
                Query("sum by (instance, version) (disque_operator_build_info)", "pods"),
                Query("sum by (instance) (disque_operator_lease_held)", "acts"),
            ),
            Kind.TABLE,
            width=12,
        ),
        Panel(
            "Memory",
            "What the operator's processes take.",
            "bytes",
            (Query("process_resident_memory_bytes and on (job, instance) disque_operator_build_info", "{{instance}}"),),
            width=12,
        ),
    ),
)

OPERATOR: Final = Board(
    uids.OPERATOR,
    "Disque / Operator",
    "How the clusters of the operator are, and how it does itself.",
    OF_OPERATOR,
    (_NOW, _CLUSTERS, _ITSELF),
)
