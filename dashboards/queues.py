"""Queues: their length, age and workers."""

from __future__ import annotations

from typing import Final

from dashboards import uids
from dashboards.model import BAD, OF_QUEUES, RISK, Board, Kind, Panel, Query, Row, rate, stat

_FEW: Final = " Nodes only export series for their longest queues (directive metrics-queues)."

_NOW: Final = Row(
    "Now",
    (
        stat(
            "Known queues",
            "The largest number of queues that a node knows. Unused queues are removed after a while.",
            "short",
            "max(disque_queues{<nodes>})",
        ),
        stat(
            "Queues without series",
            "Queues that are not shown because there are more than metrics-queues allows. The longest are shown.",
            "short",
            "max(disque_queues_left_out{<nodes>})",
        ),
        stat(
            "Jobs in these queues",
            "Jobs that wait in the queues selected above.",
            "short",
            "sum(disque_queue_jobs{<queues>})",
            empty="there are no queues",
        ),
        stat(
            "Oldest job in these queues",
            "The age of the first job. Use it to scale workers.",
            "s",
            "max(disque_queue_oldest_job_age_seconds{<queues>})",
            steps=((60, RISK), (900, BAD)),
            empty="there are no queues",
        ),
        stat(
            "Idle workers",
            "Clients that wait in GETJOB for these queues. A client that waits for several queues counts in each.",
            "short",
            "sum(disque_queue_blocked_clients{<queues>})",
            empty="there are no queues",
        ),
        stat(
            "Paused queues",
            "Queues whose input or output is paused on a node (PAUSE).",
            "short",
            "count(max by (namespace, cluster, queue) (disque_queue_paused{<queues>}) == 1) or vector(0)",
            steps=((1, RISK),),
        ),
    ),
)

_LIST: Final = Row(
    "Queues over all nodes",
    (
        Panel(
            "Queues",
            "Length, age of the first job, jobs in and out per second, jobs with workers, delayed jobs, idle workers."
            + _FEW,
            "short",
            (
                Query("sum by (namespace, cluster, queue) (disque_queue_jobs{<queues>})", "jobs"),
                Query(
                    "max by (namespace, cluster, queue) (disque_queue_oldest_job_age_seconds{<queues>})", "oldest", "s"
                ),
                Query(rate("disque_queue_jobs_in_total", "<queues>", by="namespace, cluster, queue"), "in", "ops"),
                Query(rate("disque_queue_jobs_out_total", "<queues>", by="namespace, cluster, queue"), "out", "ops"),
                Query("sum by (namespace, cluster, queue) (disque_queue_leased_jobs{<queues>})", "with workers"),
                Query("sum by (namespace, cluster, queue) (disque_queue_delayed_jobs{<queues>})", "delayed"),
                Query("sum by (namespace, cluster, queue) (disque_queue_blocked_clients{<queues>})", "workers waiting"),
                Query("max by (namespace, cluster, queue) (disque_queue_paused{<queues>})", "paused"),
            ),
            Kind.TABLE,
            width=24,
            height=10,
            empty="there are no queues",
        ),
    ),
)

_TIME: Final = Row(
    "Over time",
    (
        Panel(
            "Longest queues",
            "Waiting jobs of the ten longest queues." + _FEW,
            "short",
            (Query("topk(10, sum by (namespace, cluster, queue) (disque_queue_jobs{<queues>}))", "{{queue}}"),),
            width=12,
            empty="there are no queues",
        ),
        Panel(
            "Oldest queues",
            "Age of the first job of the ten oldest queues. If a line rises by one second per second, no "
            "worker fetches from that queue.",
            "s",
            (
                Query(
                    "topk(10, max by (namespace, cluster, queue) (disque_queue_oldest_job_age_seconds{<queues>}))",
                    "{{queue}}",
                ),
            ),
            width=12,
            steps=((900, BAD),),
            empty="there are no queues",
        ),
        Panel(
            "In",
            "New and requeued jobs per second.",
            "ops",
            (
                Query(
                    f"topk(10, {rate('disque_queue_jobs_in_total', '<queues>', by='namespace, cluster, queue')})",
                    "{{queue}}",
                ),
            ),
            empty="there are no queues",
        ),
        Panel(
            "Out",
            "Jobs per second that leave the queue for workers or other nodes.",
            "ops",
            (
                Query(
                    f"topk(10, {rate('disque_queue_jobs_out_total', '<queues>', by='namespace, cluster, queue')})",
                    "{{queue}}",
                ),
            ),
            empty="there are no queues",
        ),
        Panel(
            "Waiting workers",
            "Clients that wait in GETJOB. If there are none while jobs wait, the queue has no workers.",
            "short",
            (
                Query(
                    "topk(10, sum by (namespace, cluster, queue) (disque_queue_blocked_clients{<queues>}))", "{{queue}}"
                ),
            ),
            empty="there are no queues",
        ),
        Panel(
            "With workers",
            "Jobs that workers have and have not acknowledged. If the number rises while nothing is acknowledged, "
            "workers are stuck, or died with their jobs. At-most-once jobs are not counted." + _FEW,
            "short",
            (
                Query(
                    "topk(10, sum by (namespace, cluster, queue) (disque_queue_leased_jobs{<queues>}) > 0)", "{{queue}}"
                ),
            ),
            width=12,
            empty="no worker has a job",
        ),
        Panel(
            "Delayed",
            "Jobs that wait for the end of their delay: of ADDJOB, of NACK, or of a back-off. They are in no queue yet."
            + _FEW,
            "short",
            (
                Query(
                    "topk(10, sum by (namespace, cluster, queue) (disque_queue_delayed_jobs{<queues>}) > 0)",
                    "{{queue}}",
                ),
            ),
            width=12,
            empty="no job is delayed",
        ),
        Panel(
            "From other nodes",
            "Jobs per second imported from other nodes for clients that wait here.",
            "ops",
            (
                Query(
                    "topk(10, sum by (namespace, cluster, queue) (disque_queue_imported_jobs_per_second{<queues>}))",
                    "{{queue}}",
                ),
            ),
            width=12,
            empty="there are no queues",
        ),
        Panel(
            "Paused",
            "Paused queues by node and direction.",
            "short",
            (Query("disque_queue_paused{<queues>} == 1", "{{queue}} {{direction}} {{instance}}"),),
            Kind.STATES,
            width=12,
            names=((1, "paused", RISK),),
            empty="no queue is paused",
        ),
    ),
)

_FAILING: Final = Row(
    "Jobs that fail",
    (
        Panel(
            "Dead letters",
            "Dead letters that wait for somebody to look at them: disque dead says why they failed." + _FEW,
            "short",
            (
                Query(
                    "topk(10, sum by (namespace, cluster, queue) (disque_queue_dead_jobs{<queues>}) > 0)", "{{queue}}"
                ),
            ),
            width=12,
            empty="there are no dead letters",
        ),
        Panel(
            "New dead letters",
            "Jobs per second that became dead letters: because of the limit of attempts (limit), because a worker "
            "rejected them (rejected), or because their TTL ended (expired).",
            "ops",
            (Query(rate("disque_jobs_dead_total", by="reason"), "{{reason}}"),),
            width=12,
        ),
        Panel(
            "Failed attempts",
            "Jobs per second that came back to their queues: after a NACK, at once or after the back-off, and after "
            "RETRY without an answer.",
            "ops",
            (Query(rate("disque_jobs_requeued_total", '<nodes>,reason=~"nack|timeout"', by="reason"), "{{reason}}"),),
            width=12,
        ),
        Panel(
            "Moved and purged jobs",
            "Jobs per second that MOVEJOB and REDRIVE moved to another queue, or that QPURGE deleted.",
            "ops",
            (
                Query(rate("disque_jobs_moved_total"), "moved"),
                Query(rate("disque_jobs_purged_total"), "purged"),
            ),
            width=12,
        ),
    ),
)

_TASKS: Final = Row(
    "Tasks",
    (
        Panel(
            "Waiting for other jobs",
            "Jobs that were added with AFTER, and whose parents are not all done: disque tree shows for what one waits."
            + _FEW,
            "short",
            (
                Query(
                    "topk(10, sum by (namespace, cluster, queue) (disque_queue_held_jobs{<queues>}) > 0)", "{{queue}}"
                ),
            ),
            empty="no job waits for others",
        ),
        Panel(
            "No longer waiting",
            "Jobs per second whose parents were all done (freed), or of which a parent can no longer be done, and what "
            "became of them then (ELSE).",
            "ops",
            (
                Query(rate("disque_held_jobs_freed_total"), "freed"),
                Query(rate("disque_held_jobs_otherwise_total", by="action"), "{{action}}"),
            ),
        ),
        Panel(
            "Claims and stale workers",
            "Deliveries with a claim per second; requests that were refused because the job was delivered again since "
            "(stale), and results that were ignored for that. Many of these: workers take longer than their lease.",
            "ops",
            (
                Query(rate("disque_claims_total"), "claims"),
                Query(rate("disque_stale_refused_total"), "stale"),
                Query(rate("disque_job_results_stale_total"), "results ignored"),
            ),
        ),
        Panel(
            "Records",
            "Records of jobs that have ended (RETAIN), and the memory that they take.",
            "short",
            (
                Query("sum(disque_job_records{<nodes>})", "records"),
                Query("sum(disque_job_records_bytes{<nodes>})", "memory", "bytes"),
            ),
        ),
        Panel(
            "New and forgotten records",
            "Records per second that nodes made, and that they forgot before their time because all of them together "
            "took more memory than records-max allows.",
            "ops",
            (
                Query(rate("disque_job_records_kept_total"), "new"),
                Query(rate("disque_job_records_dropped_total"), "forgotten"),
            ),
        ),
        Panel(
            "Watched jobs",
            "Jobs about whose end other nodes or clients have asked, and questions per second for which there was no "
            "room. Those are asked again.",
            "short",
            (
                Query("sum(disque_job_watches{<nodes>})", "watched"),
                Query(rate("disque_job_watches_refused_total"), "no room", "ops"),
            ),
        ),
        Panel(
            "Progress logs",
            "Entries per second that workers added (LOGJOB).",
            "ops",
            (Query(rate("disque_log_entries_total"), "entries"),),
            width=24,
            height=5,
        ),
    ),
)

_SETTINGS: Final = Row(
    "Priorities and settings",
    (
        Panel(
            "By priority",
            "Waiting jobs by priority. Only of queues that had a job with another priority than 0." + _FEW,
            "short",
            (Query("sum by (priority) (disque_queue_priority_jobs{<queues>})", "{{priority}}"),),
            Kind.STACK,
            empty="no queue has priorities",
        ),
        Panel(
            "Limits of queues",
            "Jobs per second that ADDJOB refused because their queue is full (maxlen, maxbytes), that it dropped to "
            "make room (overflow), and copies to other queues that it left out (copy-to).",
            "ops",
            (
                Query(rate("disque_adds_refused_full_total"), "refused"),
                Query(rate("disque_jobs_dropped_oldest_total"), "dropped"),
                Query(rate("disque_copy_to_refused_total"), "copies left out"),
            ),
        ),
        Panel(
            "Settings",
            "Changes of settings per second: made by clients, taken from other nodes, refused as malformed; and "
            "exchanges of whole sets. Members that differ for longer than a few seconds cannot reach each other.",
            "ops",
            (
                Query(rate("disque_settings_changed_total"), "changed"),
                Query(rate("disque_settings_received_total"), "received"),
                Query(rate("disque_settings_refused_total"), "refused"),
                Query(rate("disque_settings_exchanged_total"), "exchanged"),
                Query("max(disque_settings_differing_nodes{<nodes>})", "members that differ", "short"),
            ),
        ),
    ),
)

_SCHEDULES: Final = Row(
    "Schedules",
    (
        Panel(
            "Runs of schedules",
            "Runs per second: whose jobs were added, that were missed, and that a node left to another one which had "
            "started them.",
            "ops",
            (
                Query(rate("disque_schedule_runs_total"), "added"),
                Query(rate("disque_schedule_runs_missed_total"), "missed"),
                Query(rate("disque_schedule_runs_refused_total"), "left to another node"),
            ),
            width=12,
        ),
        Panel(
            "Schedules",
            "Schedules of the cluster, those that should have run more than 90 seconds ago, and those that cannot run "
            "because a side of the cluster has no majority.",
            "short",
            (
                Query("max(disque_schedules{<nodes>})", "set"),
                Query("max(disque_schedules_overdue{<nodes>})", "overdue"),
                Query("max(disque_schedules_without_majority{<nodes>})", "without majority"),
            ),
            width=12,
        ),
    ),
)

_LIMITS: Final = Row(
    "Rates and caps",
    (
        Panel(
            "Held back",
            "Queues whose clients wait on a node although there are jobs: for the rate, for the jobs in flight, or "
            "because the node that grants tokens does not answer (home)." + _FEW,
            "short",
            (
                Query(
                    "max by (namespace, cluster, queue, reason) (disque_queue_held_back{<queues>}) == 1",
                    "{{queue}} {{reason}}",
                ),
            ),
            Kind.STATES,
            width=12,
            names=((1, "held back", RISK),),
            empty="nothing is held back",
        ),
        Panel(
            "In flight",
            "Jobs that workers have, of queues with a cap (inflight), at-most-once jobs included." + _FEW,
            "short",
            (
                Query(
                    "topk(10, sum by (namespace, cluster, queue) (disque_queue_in_flight_jobs{<queues>}))", "{{queue}}"
                ),
            ),
            width=12,
            empty="no queue has a cap",
        ),
        Panel(
            "Deliveries with limits",
            "Deliveries per second of queues with limits; tokens that rate homes granted for them, and that came back "
            "unused; and times that a client found jobs and no token.",
            "ops",
            (
                Query(rate("disque_limited_deliveries_total"), "delivered"),
                Query(rate("disque_tokens_granted_total"), "granted"),
                Query(rate("disque_tokens_returned_total"), "unused"),
                Query(rate("disque_deliveries_held_back_total"), "held back"),
            ),
            width=12,
        ),
        Panel(
            "Members and limits",
            "Queues with limits on the busiest node, members that deliver without limits because their release does "
            "not know them, and malformed messages about tokens per second.",
            "short",
            (
                Query("max(disque_limited_queues{<nodes>})", "limited queues"),
                Query("max(disque_nodes_without_limits{<nodes>})", "members without limits"),
                Query(rate("disque_tokens_refused_total"), "malformed", "ops"),
            ),
            width=12,
        ),
    ),
)

QUEUES: Final = Board(
    uids.QUEUES,
    "Disque / Queues",
    "Length, age and workers of the queues.",
    OF_QUEUES,
    (_NOW, _LIST, _TIME, _FAILING, _TASKS, _SETTINGS, _LIMITS, _SCHEDULES),
)
