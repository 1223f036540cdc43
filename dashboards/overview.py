"""Health and throughput: the dashboard to start with."""

from __future__ import annotations

from typing import Final

from dashboards import uids
from dashboards.model import BAD, OF_BROKERS, RISK, Board, Kind, Panel, Query, Row, halves, heatmap, rate, stat

_NOW: Final = Row(
    "Now",
    (
        stat(
            "Nodes up",
            "Nodes that Prometheus can scrape. If some are missing, see the cluster dashboard.",
            "short",
            "count(disque_build_info{<nodes>})",
            leads_to=uids.CLUSTER,
        ),
        stat(
            "Nodes not ready",
            "Nodes that respond but accept no new jobs: they are loading their file, leaving or shutting "
            "down, or their disk fails.",
            "short",
            "count(disque_ready{<nodes>} == 0) or vector(0)",
            steps=((1, RISK),),
            leads_to=uids.CLUSTER,
        ),
        stat(
            "Jobs waiting",
            "Jobs in the queues of all nodes. A few are normal. Watch whether the number grows, and how old "
            "the jobs get.",
            "short",
            'sum(disque_jobs{<nodes>,state="queued"})',
            leads_to=uids.QUEUES,
        ),
        stat(
            "Oldest waiting job",
            "The age of the first job of any queue. Use it to scale workers.",
            "s",
            "max(disque_oldest_waiting_job_age_seconds{<nodes>})",
            steps=((60, RISK), (900, BAD)),
            leads_to=uids.QUEUES,
        ),
        stat(
            "Memory of the fullest node",
            "Share of maxmemory. Above 75 % a node sends new jobs to other nodes; above 100 % it rejects them.",
            "percentunit",
            "max(disque_memory_used_bytes{<nodes>} / (disque_memory_max_bytes{<nodes>} > 0))",
            steps=((0.75, RISK), (0.95, BAD)),
            leads_to=uids.MEMORY_DISK,
            empty="no node has a limit (maxmemory 0)",
        ),
        stat(
            "Firing alerts",
            "Firing alerts of this project, if this Prometheus has its rules.",
            "short",
            'count(ALERTS{alertname=~"Disque.*",alertstate="firing",<clusters>}) or vector(0)',
            steps=((1, BAD),),
        ),
    ),
)

_TENANT: Final = "namespace, cluster"
_CLUSTERS: Final = Row(
    "Clusters",
    (
        Panel(
            "Clusters",
            "Each cluster of the selection: its nodes, waiting jobs and the age of the oldest one, "
            "jobs added and delivered, "
            "memory of the fullest node, requests rejected because of memory, disk, leaving or loading.",
            "short",
            (
                Query(f"count by ({_TENANT}) (disque_build_info{{<nodes>}})", "nodes"),
                Query(f"count by ({_TENANT}) (disque_ready{{<nodes>}} == 1)", "ready"),
                Query(f'sum by ({_TENANT}) (disque_jobs{{<nodes>,state="queued"}})', "waiting"),
                Query(f"max by ({_TENANT}) (disque_oldest_waiting_job_age_seconds{{<nodes>}})", "oldest", "s"),
                Query(rate("disque_jobs_added_total", by=_TENANT), "added", "ops"),
                Query(rate("disque_jobs_delivered_total", by=_TENANT), "delivered", "ops"),
                Query(
                    f"max by ({_TENANT}) (disque_memory_used_bytes{{<nodes>}} / "
                    f"(disque_memory_max_bytes{{<nodes>}} > 0))",
                    "memory",
                    "percentunit",
                ),
                Query(rate("disque_requests_refused_total", by=_TENANT), "rejected", "ops"),
            ),
            Kind.TABLE,
            width=16,
            empty="no node has a limit of memory, so that column is empty",
        ),
        Panel(
            "Firing alerts, with runbooks",
            "Alerts of this project that fire. Click a name to open its runbook.",
            "short",
            (
                Query(
                    "sum by (alertname, severity, namespace, cluster) "
                    '(ALERTS{alertname=~"Disque.*",alertstate="firing",<clusters>})',
                    "firing",
                ),
            ),
            Kind.TABLE,
            runbooks=True,
            empty="no alert fires",
        ),
    ),
)

_JOBS: Final = Row(
    "Jobs",
    (
        Panel(
            "Through",
            "Jobs per second that were added, delivered and acknowledged. The three are equal while workers "
            "keep up. More deliveries than additions mean redeliveries. Known by key: ADDJOBs that returned "
            "an existing job.",
            "ops",
            (
                Query(rate("disque_jobs_added_total"), "added"),
                Query(rate("disque_jobs_delivered_total"), "delivered"),
                Query(rate("disque_jobs_acked_total"), "acknowledged"),
                Query(rate("disque_jobs_deduplicated_total"), "known by key"),
            ),
        ),
        Panel(
            "By state",
            "Jobs that the nodes hold. Copies count on each node that holds one. A queued job counts once. "
            "Many acknowledged jobs mean that a node that holds copies of them does not respond.",
            "short",
            (Query("sum by (state) (disque_jobs{<nodes>})", "{{state}}"),),
            Kind.STACK,
        ),
        Panel(
            "Age at delivery",
            "The time from creation to delivery, including delays, as producers see it.",
            "s",
            halves("disque_job_delivery_age_seconds"),
            empty="nothing was delivered",
        ),
        Panel(
            "Requeued",
            "Jobs per second that return to a queue: after their retry time, after NACK, by ENQUEUE, or "
            "because another node held them. Timeouts mean that workers die or are slower than RETRY.",
            "ops",
            (Query(rate("disque_jobs_requeued_total", by="reason"), "{{reason}}"),),
        ),
        Panel(
            "Expired and evicted",
            "Expired: the TTL ended before an acknowledgement. Evicted: acknowledgements, and delivered at-"
            "most-once jobs, dropped to free memory. Expired when done: acknowledged jobs, so nothing is "
            "lost.",
            "ops",
            (
                Query(rate("disque_jobs_expired_total"), "expired"),
                Query(rate("disque_jobs_evicted_total"), "evicted"),
                Query(
                    f"{rate('disque_records_expired_total')} - {rate('disque_jobs_expired_total')}",
                    "expired when done",
                ),
            ),
        ),
        Panel(
            "Rejected requests",
            "Requests per second that nodes rejected because of memory, disk, leaving or loading. Producers "
            "get errors.",
            "ops",
            (Query(rate("disque_requests_refused_total", by="reason"), "{{reason}}"),),
        ),
    ),
)

_COMMANDS: Final = Row(
    "Commands and clients",
    (
        Panel(
            "Commands",
            "The ten most frequent commands, per second.",
            "ops",
            (Query(f"topk(10, {rate('disque_commands_total', by='command')})", "{{command}}"),),
        ),
        Panel(
            "Latency of commands, 99th percentile",
            "The 99th percentile of the processing time, without the time that a client waits for jobs or copies.",
            "s",
            (
                Query(
                    "topk(10, histogram_quantile(0.99, sum by (le, command) "
                    "(rate(disque_command_duration_seconds_bucket{<nodes>}[$__rate_interval]))) > 0)",
                    "{{command}}",
                ),
            ),
            empty="no command was run",
        ),
        Panel(
            "Errors",
            "Error replies per second by error code. NOREPL: too few copies were made. OOM: out of memory.",
            "ops",
            (
                Query(rate("disque_errors_total", by="code"), "{{code}}"),
                Query(rate("disque_commands_total", '<nodes>,result="error"'), "failed commands"),
            ),
            empty="no command has failed",
        ),
        Panel(
            "Clients",
            "Client connections, and how many of them are blocked: workers that wait for jobs (GETJOB), "
            "producers that wait for copies (ADDJOB).",
            "short",
            (
                Query("sum(disque_connected_clients{<nodes>})", "connected"),
                Query("sum(disque_blocked_clients{<nodes>})", "waiting"),
            ),
        ),
        Panel(
            "Connections",
            "New connections per second, connections rejected because of maxclients, and connections closed "
            "because the client did not read or used too much memory. Many new connections mean that clients "
            "connect for each job.",
            "ops",
            (
                Query(rate("disque_connections_received_total"), "accepted"),
                Query(rate("disque_rejected_connections_total"), "rejected"),
                Query(rate("disque_clients_closed_total", by="reason"), "closed, {{reason}}"),
            ),
        ),
        Panel(
            "Network",
            "Bytes per second from and to clients, without the cluster bus.",
            "Bps",
            (
                Query(rate("disque_network_received_bytes_total"), "received"),
                Query(rate("disque_network_sent_bytes_total"), "sent"),
            ),
        ),
        Panel(
            "Refused",
            "What was refused per second: logins with a wrong user or password, requests that the rules of a user "
            "do not allow, and TLS handshakes that failed.",
            "ops",
            (
                Query(rate("disque_logins_failed_total"), "logins"),
                Query(rate("disque_requests_forbidden_total", by="reason"), "requests, {{reason}}"),
                Query(rate("disque_tls_handshakes_failed_total"), "TLS handshakes"),
                Query(rate("disque_audit_records_lost_total"), "audit records that could not be written"),
                Query("sum(disque_tls_certificate_refused{<nodes>}) or vector(0)", "new certificates that do not work"),
                Query("sum(disque_cluster_links_unproven{<nodes>})", "bus connections without the cluster secret"),
            ),
            empty="nothing was refused",
            width=24,
        ),
    ),
)

_PROCESS: Final = Row(
    "Processes",
    (
        Panel(
            "Processor",
            "Share of one core. A node uses one core at most, so 1 is saturation.",
            "percentunit",
            (
                Query(
                    "rate(process_cpu_seconds_total{<nodes>}[$__rate_interval]) "
                    "and on (job, namespace, instance) disque_build_info",
                    "{{instance}}",
                ),
            ),
            steps=((0.9, RISK),),
        ),
        Panel(
            "Event loop lag, 99th percentile",
            "How late timers run. No client is served for that time.",
            "s",
            (
                Query(
                    "histogram_quantile(0.99, sum by (le, namespace, cluster, instance) "
                    "(rate(disque_event_loop_lag_seconds_bucket{<nodes>}[$__rate_interval])))",
                    "{{instance}}",
                ),
            ),
            steps=((0.25, RISK),),
        ),
        Panel(
            "Open files",
            "Share of the limit. Each connection uses one.",
            "percentunit",
            (
                Query(
                    "process_open_fds{<nodes>} / process_max_fds{<nodes>} and on (job, namespace, "
                    "instance) disque_build_info",
                    "{{instance}}",
                ),
            ),
            steps=((0.85, RISK),),
        ),
        Panel(
            "Uptime",
            "The time since the process started. A drop is a restart.",
            "s",
            (Query("time() - disque_start_time_seconds{<nodes>}", "{{instance}}"),),
        ),
        Panel(
            "Scrape duration",
            "How long a node took to write its last metrics page.",
            "s",
            (Query("disque_scrape_duration_seconds{<nodes>}", "{{instance}}"),),
        ),
        Panel(
            "HTTP",
            "Responses of the HTTP port per second: probes, metrics, console.",
            "ops",
            (Query(rate("disque_http_requests_total", by="page, code"), "{{page}} {{code}}"),),
        ),
        Panel(
            "Versions",
            "The version, build and Python of the nodes. More than one is normal only during an upgrade.",
            "short",
            (Query("count by (namespace, cluster, version, build, python) (disque_build_info{<nodes>})", "nodes"),),
            Kind.TABLE,
            width=24,
            height=5,
        ),
    ),
)

_HEATMAPS: Final = Row(
    "Distributions",
    (
        heatmap(
            "Age of jobs at delivery",
            "How many jobs were delivered at which age. Two bands are two kinds of jobs, such as "
            "urgent and delayed ones.",
            "disque_job_delivery_age_seconds",
            empty="nothing was delivered",
        ),
        heatmap(
            "Duration of commands",
            "How many commands took how long, without the time that clients wait for jobs or copies.",
            "disque_command_duration_seconds",
        ),
    ),
)

OVERVIEW: Final = Board(
    uids.OVERVIEW,
    "Disque / Overview",
    "Health and throughput.",
    OF_BROKERS,
    (_NOW, _CLUSTERS, _JOBS, _COMMANDS, _PROCESS, _HEATMAPS),
)
