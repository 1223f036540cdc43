"""Alerts about queues and jobs."""

from __future__ import annotations

from typing import Final

from dashboards import uids
from dashboards.alerts.alert import CLUSTER, Alert, Group, Severity

_QUEUE: Final = "namespace, cluster, queue"
_PAUSED: Final = f'max by ({_QUEUE}) (disque_queue_paused{{direction="out"}}) == 1'
_DEAD: Final = f"sum by ({_QUEUE}) (disque_queue_dead_jobs) > 0"
"""A queue of dead letters has no workers and is old: DisqueDeadLetters reports them."""
_HELD_BACK: Final = f"max by ({_QUEUE}) (disque_queue_held_back) == 1"
"""Its rate or its cap lets no worker have more jobs: DisqueQueueHeldBack reports it."""
_OLD: Final = "disque_queue_oldest_job_age_seconds > 900 and delta(disque_queue_oldest_job_age_seconds[10m]) > 300"
"""Older than 15 minutes, and aging by at least half of the time that passes. The age counts from creation, so the age
alone means nothing for delayed jobs."""
_OLD_SOMEWHERE: Final = _OLD.replace("disque_queue_oldest_job_age", "disque_oldest_waiting_job_age")

QUEUES: Final = Group(
    "disque-queues",
    "Queues and jobs",
    (
        Alert(
            "DisqueQueueStuck",
            Severity.WARNING,
            "5m",
            f"max by ({_QUEUE}) ({_OLD})\n"
            f"unless {_PAUSED}\n"
            f"unless {_HELD_BACK}\n"
            f"unless {_DEAD}\n"
            "or\n"
            f"max by (namespace, cluster) ({_OLD_SOMEWHERE})\n"
            "unless on (namespace, cluster) disque_queue_oldest_job_age_seconds > 900",
            "Jobs of {{ with $labels.queue }}the queue {{ . }}{{ else }}a queue{{ end }} are getting older"
            f" in {CLUSTER}",
            "The first job was created {{ $value | humanizeDuration }} ago: workers are down, hang or are too "
            "few. If the message names no queue, the queue has no series of its own: find it with disque top.",
            uids.QUEUES,
        ),
        Alert(
            "DisqueQueueOldestJob",
            Severity.WARNING,
            "15m",
            f"max by ({_QUEUE}) (disque_queue_oldest_job_age_seconds) > 3600\n"
            f"unless {_PAUSED}\n"
            f"unless {_HELD_BACK}\n"
            f"unless {_DEAD}",
            f"The oldest job of the queue {{{{ $labels.queue }}}} of {CLUSTER} is too old",
            "It was created {{ $value | humanizeDuration }} ago and waits: workers are too few, or jobs with a higher "
            "priority leave no time for it. An hour is the default threshold.",
            uids.QUEUES,
        ),
        Alert(
            "DisqueQueueHeldBack",
            Severity.WARNING,
            "15m",
            f"max by ({_QUEUE}, reason) (disque_queue_held_back) == 1\n"
            f"and on ({_QUEUE})\n"
            f"max by ({_QUEUE}) (disque_queue_oldest_job_age_seconds) > 3600",
            f"Limits of the queue {{{{ $labels.queue }}}} of {CLUSTER} hold old jobs back ({{{{ $labels.reason }}}})",
            "Workers wait, and jobs are older than an hour: the rate allows less than producers add (rate), jobs in "
            "flight do not end (inflight), or the node that grants tokens does not answer (home).",
            uids.QUEUES,
        ),
        Alert(
            "DisqueQueueGrowing",
            Severity.WARNING,
            "10m",
            f"sum by ({_QUEUE}) (min_over_time(disque_queue_jobs[5m])) > 1000\n"
            "and\n"
            f"sum by ({_QUEUE}) (min_over_time(disque_queue_jobs[5m]))\n"
            f"> sum by ({_QUEUE}) (max_over_time(disque_queue_jobs[5m] offset 10m))\n"
            f"unless {_DEAD}",
            f"The queue {{{{ $labels.queue }}}} of {CLUSTER} keeps growing",
            "{{ $value | humanize }} jobs wait, and for ten minutes the queue has been longer than ten minutes before: "
            "producers add more than workers process. Eventually the memory is full.",
            uids.QUEUES,
        ),
        Alert(
            "DisqueQueueNoConsumers",
            Severity.WARNING,
            "10m",
            f"sum by ({_QUEUE}) (disque_queue_jobs) > 0\n"
            f"unless sum by ({_QUEUE}) (disque_queue_blocked_clients) > 0\n"
            f"unless sum by ({_QUEUE}) (increase(disque_queue_jobs_out_total[10m])) > 0\n"
            f"unless {_PAUSED}\n"
            f"unless {_DEAD}",
            f"The queue {{{{ $labels.queue }}}} of {CLUSTER} has no workers",
            "{{ $value | humanize }} jobs wait, and for ten minutes no client has waited for this queue or "
            "fetched a job.",
            uids.QUEUES,
        ),
        Alert(
            "DisqueQueuePaused",
            Severity.INFO,
            "1h",
            "max by (namespace, cluster, queue, direction) (disque_queue_paused) == 1",
            f"The queue {{{{ $labels.queue }}}} of {CLUSTER} has been paused for an hour ({{{{ $labels.direction }}}})",
            "Input paused: ADDJOB is rejected. Output paused: GETJOB returns nothing. The queue stays paused "
            "until it is resumed.",
            uids.QUEUES,
        ),
        Alert(
            "DisqueRedeliveriesHigh",
            Severity.WARNING,
            "10m",
            "sum by (namespace, cluster) "
            '(rate(disque_jobs_requeued_total{reason=~"timeout|nack"}[10m]))\n'
            "/ (sum by (namespace, cluster) (rate(disque_jobs_delivered_total[10m])) > 0.1) > 0.05",
            f"Many jobs of {CLUSTER} are redelivered",
            "After {{ $value | humanizePercentage }} of the deliveries the job returns to its queue: workers "
            "reject it (NACK), die, or take longer than its RETRY.",
            uids.OVERVIEW,
        ),
        Alert(
            "DisqueDeadLetters",
            Severity.WARNING,
            "0m",
            "sum by (namespace, cluster, reason) (increase(disque_jobs_dead_total[10m])) > 0",
            f"Jobs of {CLUSTER} become dead letters ({{{{ $labels.reason }}}})",
            "{{ $value | humanize }} jobs within ten minutes reached their limit of attempts, were rejected by a "
            "worker, or expired. They are kept for a week: disque dead says why they failed.",
            uids.QUEUES,
        ),
        Alert(
            "DisqueSettingsIgnored",
            Severity.WARNING,
            "1h",
            "max by (namespace, cluster) (disque_nodes_without_settings) > 0\n"
            "and\n"
            "max by (namespace, cluster) (disque_queue_settings) > 0",
            f"Members of {CLUSTER} ignore the settings of queues",
            "{{ $value | humanize }} members are nodes of the original or of release 0.1: on them, limits of attempts, "
            "back-off, maximum lengths and pauses of queues do not hold.",
            uids.CLUSTER,
        ),
        Alert(
            "DisqueScheduleMissed",
            Severity.WARNING,
            "0m",
            "sum by (namespace, cluster) (increase(disque_schedule_runs_missed_total[15m])) > 0",
            f"Schedules of {CLUSTER} miss runs",
            "{{ $value | humanize }} times at which a schedule was due passed within 15 minutes without a job. disque "
            "schedules says which schedules and why.",
            uids.QUEUES,
        ),
        Alert(
            "DisqueScheduleOverdue",
            Severity.WARNING,
            "5m",
            "max by (namespace, cluster) (disque_schedules_overdue) > 0",
            f"Schedules of {CLUSTER} are due and do not run",
            "{{ $value | humanize }} schedules should have run more than five minutes ago, and no node has added their "
            "jobs.",
            uids.QUEUES,
        ),
        Alert(
            "DisqueJobsExpiring",
            Severity.WARNING,
            "0m",
            "sum by (namespace, cluster) (increase(disque_jobs_expired_total[10m])) > 0",
            f"Jobs of {CLUSTER} expire before they are processed",
            "The TTL of {{ $value | humanize }} jobs (counting each copy) ended within ten minutes without an "
            "acknowledgement. They are lost, and no client is notified.",
            uids.OVERVIEW,
        ),
    ),
)
