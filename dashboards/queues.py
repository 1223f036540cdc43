"""Queues: which are long, old, or have no workers."""

from __future__ import annotations

from typing import Final

from dashboards import uids
from dashboards.model import BAD, OF_QUEUES, RISK, Board, Kind, Panel, Query, Row, rate, stat

_FEW: Final = " Nodes have series of their longest queues only (directive metrics-queues)."

_NOW: Final = Row(
    "Now",
    (
        stat(
            "Queues known",
            "The largest number of queues that a node knows. Queues that nobody uses are forgotten after a while.",
            "short",
            "max(disque_queues{<nodes>})",
        ),
        stat(
            "Queues without series",
            "Queues that are not shown here, because there are more than metrics-queues allows. The longest are shown.",
            "short",
            "max(disque_queues_left_out{<nodes>})",
        ),
        stat(
            "Jobs in these queues",
            "Jobs that wait in the queues that are chosen above.",
            "short",
            "sum(disque_queue_jobs{<queues>})",
            empty="there are no queues",
        ),
        stat(
            "Oldest job in these queues",
            "How long ago the first job was created. This is what to scale workers by.",
            "s",
            "max(disque_queue_oldest_job_age_seconds{<queues>})",
            steps=((60, RISK), (900, BAD)),
            empty="there are no queues",
        ),
        stat(
            "Workers that wait",
            "Clients that wait in GETJOB for these queues; one that waits for several counts in each.",
            "short",
            "sum(disque_queue_blocked_clients{<queues>})",
            empty="there are no queues",
        ),
        stat(
            "Paused queues",
            "Queues that are paused for adding or getting on some node (PAUSE).",
            "short",
            "count(max by (queue) (disque_queue_paused{<queues>}) == 1) or vector(0)",
            steps=((1, RISK),),
        ),
    ),
)

_LIST: Final = Row(
    "Each queue, over all nodes",
    (
        Panel(
            "Queues",
            "Length, age of the first job, jobs in and out per second, waiting workers." + _FEW,
            "short",
            (
                Query("sum by (queue) (disque_queue_jobs{<queues>})", "jobs"),
                Query("max by (queue) (disque_queue_oldest_job_age_seconds{<queues>})", "oldest", "s"),
                Query(rate("disque_queue_jobs_in_total", "<queues>", by="queue"), "in", "ops"),
                Query(rate("disque_queue_jobs_out_total", "<queues>", by="queue"), "out", "ops"),
                Query("sum by (queue) (disque_queue_blocked_clients{<queues>})", "workers waiting"),
                Query("max by (queue) (disque_queue_paused{<queues>})", "paused"),
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
            "Longest",
            "Jobs that wait, the ten longest queues." + _FEW,
            "short",
            (Query("topk(10, sum by (queue) (disque_queue_jobs{<queues>}))", "{{queue}}"),),
            width=12,
            empty="there are no queues",
        ),
        Panel(
            "Oldest",
            "Age of the first job, the ten oldest. A line that rises by one second per second is a queue that nobody "
            "gets from.",
            "s",
            (Query("topk(10, max by (queue) (disque_queue_oldest_job_age_seconds{<queues>}))", "{{queue}}"),),
            width=12,
            steps=((900, BAD),),
            empty="there are no queues",
        ),
        Panel(
            "In",
            "Jobs per second that join a queue: new ones, and those that come back.",
            "ops",
            (Query(f"topk(10, {rate('disque_queue_jobs_in_total', '<queues>', by='queue')})", "{{queue}}"),),
            empty="there are no queues",
        ),
        Panel(
            "Out",
            "Jobs per second that leave a queue: to workers, and to other nodes.",
            "ops",
            (Query(f"topk(10, {rate('disque_queue_jobs_out_total', '<queues>', by='queue')})", "{{queue}}"),),
            empty="there are no queues",
        ),
        Panel(
            "Waiting workers",
            "Clients that wait in GETJOB. None for long, while jobs wait: nobody works on that queue.",
            "short",
            (Query("topk(10, sum by (queue) (disque_queue_blocked_clients{<queues>}))", "{{queue}}"),),
            empty="there are no queues",
        ),
        Panel(
            "From other nodes",
            "Jobs per second that came from other nodes, because here is who wants them.",
            "ops",
            (Query("topk(10, sum by (queue) (disque_queue_imported_jobs_per_second{<queues>}))", "{{queue}}"),),
            width=12,
            empty="there are no queues",
        ),
        Panel(
            "Paused",
            "Queues that were paused, by node and direction.",
            "short",
            (Query("disque_queue_paused{<queues>} == 1", "{{queue}} {{direction}} {{instance}}"),),
            Kind.STATES,
            width=12,
            names=((1, "paused", RISK),),
            empty="no queue is paused",
        ),
    ),
)

QUEUES: Final = Board(
    uids.QUEUES,
    "Disque / Queues",
    "Which queues are long, old, or have no workers.",
    OF_QUEUES,
    (_NOW, _LIST, _TIME),
)
