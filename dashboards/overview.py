"""Is all well, and how much goes through: the dashboard to begin with."""

from __future__ import annotations

from typing import Final

from dashboards import uids
from dashboards.model import BAD, OF_BROKERS, RISK, Board, Kind, Panel, Query, Row, halves, rate, stat

_NOW: Final = Row(
    "Now",
    (
        stat(
            "Nodes that answer",
            "Nodes that Prometheus reads. Fewer than there should be: see the cluster.",
            "short",
            "count(disque_build_info{<nodes>})",
            leads_to=uids.CLUSTER,
        ),
        stat(
            "Nodes not ready",
            "Nodes that answer, but serve no new jobs: they load their file, leave, end, or their disk fails.",
            "short",
            "count(disque_ready{<nodes>} == 0) or vector(0)",
            steps=((1, RISK),),
            leads_to=uids.CLUSTER,
        ),
        stat(
            "Jobs waiting",
            "Jobs in queues, over all nodes. A few are normal; what counts is whether it grows, and how old they get.",
            "short",
            'sum(disque_jobs{<nodes>,state="queued"})',
            leads_to=uids.QUEUES,
        ),
        stat(
            "Oldest waiting job",
            "How long ago the first job of any queue was created. This is what to scale workers by.",
            "s",
            "max(disque_oldest_waiting_job_age_seconds{<nodes>})",
            steps=((60, RISK), (900, BAD)),
            leads_to=uids.QUEUES,
        ),
        stat(
            "Memory, fullest node",
            "Share of maxmemory. Above 75 % a node sends new jobs to others, above 100 % it refuses them.",
            "percentunit",
            "max(disque_memory_used_bytes{<nodes>} / (disque_memory_max_bytes{<nodes>} > 0))",
            steps=((0.75, RISK), (0.95, BAD)),
            leads_to=uids.MEMORY_DISK,
            empty="no node has a limit (maxmemory 0)",
        ),
        stat(
            "Alerts that fire",
            "Alerts of this project, if its rules are loaded into this Prometheus.",
            "short",
            'count(ALERTS{alertname=~"Disque.*",alertstate="firing",<clusters>}) or vector(0)',
            steps=((1, BAD),),
        ),
    ),
)

_JOBS: Final = Row(
    "Jobs",
    (
        Panel(
            "Through",
            "Jobs per second that were added, delivered to workers and acknowledged. The three are level when workers "
            "keep up; more deliveries than additions are redeliveries. Known by key: adds that found their job there.",
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
            "What the nodes keep. Copies count on each node that has one, except in queues: a job waits in one. Many "
            "acked ones mean that a holder of them does not answer.",
            "short",
            (Query("sum by (state) (disque_jobs{<nodes>})", "{{state}}"),),
            Kind.STACK,
        ),
        Panel(
            "Age at delivery",
            "From creation to delivery, delays included: what the one who added a job sees.",
            "s",
            halves("disque_job_delivery_age_seconds"),
            empty="nothing was delivered",
        ),
        Panel(
            "Put back into queues",
            "Jobs per second that go back: after their retry time, because a worker gave them back (nack), by ENQUEUE, "
            "or because another node had them. Timeouts mean workers that die or are slower than RETRY.",
            "ops",
            (Query(rate("disque_jobs_requeued_total", by="reason"), "{{reason}}"),),
        ),
        Panel(
            "Lost by age or for memory",
            "Expired: the TTL ended before somebody acknowledged. Evicted: what may be lost (acknowledgements, "
            "at-most-once jobs that were delivered) went for memory. Expired when done is nothing lost.",
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
            "Refused requests",
            "Requests per second that nodes refused for want of memory, because of the disk, or because they leave or "
            "load. Producers see errors.",
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
            "Commands per second, the ten busiest.",
            "ops",
            (Query(f"topk(10, {rate('disque_commands_total', by='command')})", "{{command}}"),),
        ),
        Panel(
            "Time of commands, 99 %",
            "What one command in a hundred exceeds, without the time that a client waits for jobs or copies.",
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
            "Replies per second that were errors, by their first word. NOREPL: copies were not made. OOM: memory.",
            "ops",
            (
                Query(rate("disque_errors_total", by="code"), "{{code}}"),
                Query(rate("disque_commands_total", '<nodes>,result="error"'), "commands that failed"),
            ),
            empty="no command has failed",
        ),
        Panel(
            "Clients",
            "Connections of clients, and those among them that wait: workers with nothing to do (GETJOB), producers "
            "whose jobs get their copies (ADDJOB).",
            "short",
            (
                Query("sum(disque_connected_clients{<nodes>})", "connected"),
                Query("sum(disque_blocked_clients{<nodes>})", "waiting"),
            ),
        ),
        Panel(
            "Connections",
            "New connections per second, those refused because of maxclients, and those hung up on because they did "
            "not read or took too much memory. Many new ones: clients that connect for each job.",
            "ops",
            (
                Query(rate("disque_connections_received_total"), "accepted"),
                Query(rate("disque_rejected_connections_total"), "refused"),
                Query(rate("disque_clients_closed_total", by="reason"), "hung up on, {{reason}}"),
            ),
        ),
        Panel(
            "Network",
            "Bytes per second from and to clients; those of the bus are not counted.",
            "Bps",
            (
                Query(rate("disque_network_received_bytes_total"), "received"),
                Query(rate("disque_network_sent_bytes_total"), "sent"),
            ),
        ),
    ),
)

_PROCESS: Final = Row(
    "Processes",
    (
        Panel(
            "Processor",
            "Share of one core; a node can use one, so 1 is the most it can do.",
            "percentunit",
            (
                Query(
                    "rate(process_cpu_seconds_total{<nodes>}[$__rate_interval]) "
                    "and on (job, instance) disque_build_info",
                    "{{instance}}",
                ),
            ),
            steps=((0.9, RISK),),
        ),
        Panel(
            "Lag of the event loop, 99 %",
            "How much later than due a timer runs: for so long nobody was served.",
            "s",
            (
                Query(
                    "histogram_quantile(0.99, sum by (le, instance) "
                    "(rate(disque_event_loop_lag_seconds_bucket{<nodes>}[$__rate_interval])))",
                    "{{instance}}",
                ),
            ),
            steps=((0.25, RISK),),
        ),
        Panel(
            "Open files",
            "Share of the limit; connections take one each.",
            "percentunit",
            (
                Query(
                    "process_open_fds{<nodes>} / process_max_fds{<nodes>} and on (job, instance) disque_build_info",
                    "{{instance}}",
                ),
            ),
            steps=((0.85, RISK),),
        ),
        Panel(
            "Running for",
            "Since the process began; a fall is a restart.",
            "s",
            (Query("time() - disque_start_time_seconds{<nodes>}", "{{instance}}"),),
        ),
        Panel(
            "Writing this page's figures",
            "How long a node needed for its page of metrics, the last time.",
            "s",
            (Query("disque_scrape_duration_seconds{<nodes>}", "{{instance}}"),),
        ),
        Panel(
            "HTTP",
            "Answers of the HTTP port per second: probes, metrics, the console.",
            "ops",
            (Query(rate("disque_http_requests_total", by="page, code"), "{{page}} {{code}}"),),
        ),
        Panel(
            "Versions",
            "Which version, build and Python each node runs. More than one only during an upgrade.",
            "short",
            (Query("count by (version, build, python) (disque_build_info{<nodes>})", "nodes"),),
            Kind.TABLE,
            width=24,
            height=5,
        ),
    ),
)

OVERVIEW: Final = Board(
    uids.OVERVIEW,
    "Disque / Overview",
    "Is all well, and how much goes through.",
    OF_BROKERS,
    (_NOW, _JOBS, _COMMANDS, _PROCESS),
)
