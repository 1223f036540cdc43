"""The calls about schedules: SCHEDULE. `calls` describes what a call is.

All but `schedule_run` may be repeated, also at another node: they lead to the same schedule.
"""

from __future__ import annotations

from typing import Literal

from disqued.client import replies
from disqued.client.calls import Call
from disqued.client.values import JobId, Schedule
from disqued.client.wire import option_words


def schedule_set(
    name: str,
    when: str,
    queue: str,
    body: str | bytes,
    *,
    zone: str | None = None,
    missed: Literal["skip", "once"] | None = None,
    strict: bool | None = None,
    replicate: int | None = None,
    delay_s: int | None = None,
    retry_s: int | None = None,
    ttl_s: int | None = None,
    maxlen: int | None = None,
    priority: int | None = None,
    meta: str | bytes | None = None,
    retain_s: int | None = None,
) -> Call[str]:
    """Set a schedule: the cluster adds a job to a queue whenever it is due (SCHEDULE SET).

    Returns `OK` when the schedule is on the disk of the node. A schedule that is set in the same way already stays as
    it is, so a program can set its schedules whenever it starts. A paused schedule stays paused.

    Args:
        name: The name of the schedule, at most 256 bytes, without `*`, `?` and `[`.
        when: A cron line of 5 fields, or of 6 with seconds first; `@hourly`, `@daily`, `@weekly`, `@monthly`,
            `@yearly`; `every 30 s`, with s, m, h or d; or `at` with unix milliseconds.
        queue: The queue of the jobs.
        body: Their body. With the options a schedule has at most 32 KiB.
        zone: The time zone of a cron line, for example `Europe/Berlin`; UTC if omitted.
        missed: `once`: when no node could run the schedule for a while, the last time that was missed is made up for.
            `skip`, the default: only if it is at most a minute late.
        strict: Whether the schedule runs only on the side of a partition that has the majority of the nodes, so that
            it never runs twice. True if omitted.
        replicate: How many nodes must hold a copy of a job. If fewer can be reached, those are enough.
        delay_s: How long a job waits before its first delivery.
        retry_s: How long to wait for an acknowledgement before delivering a job again.
        ttl_s: How long a job lives.
        maxlen: Add no job while the queue holds this many.
        priority: Jobs with a higher priority are delivered first.
        meta: Up to 4 KiB beside the body.
        retain_s: For how long the nodes that have a job remember how it ended.

    Raises:
        ResponseError: an argument is invalid, or there are 1,000 schedules already.
    """
    words = option_words(TZ=zone, MISSED=missed, STRICT=None if strict is None else "yes" if strict else "no")
    words += option_words(REPLICATE=replicate, DELAY=delay_s, RETRY=retry_s, TTL=ttl_s, MAXLEN=maxlen)
    words += option_words(PRIORITY=priority, META=meta, RETAIN=retain_s)
    return Call(("SCHEDULE", name, "SET", when, queue, body, *words), replies.text, repeat=True)


def schedule_delete(name: str) -> Call[int]:
    """Remove a schedule (SCHEDULE DEL). Returns how many there were: 1 or 0.

    If the client had to repeat the call, that may be 0 although it removed the schedule.
    """
    return Call(("SCHEDULE", name, "DEL"), replies.integer, repeat=True)


def schedule_pause(name: str) -> Call[str]:
    """Pause a schedule on all nodes until `schedule_resume` (SCHEDULE PAUSE)."""
    return Call(("SCHEDULE", name, "PAUSE"), replies.text, repeat=True)


def schedule_resume(name: str) -> Call[str]:
    """Let a paused schedule run again (SCHEDULE RESUME). The times meanwhile do not count as missed."""
    return Call(("SCHEDULE", name, "RESUME"), replies.text, repeat=True)


def schedule_run(name: str) -> Call[JobId]:
    """Add the job of a schedule now, also if it is paused (SCHEDULE RUN). Returns the ID of the job."""
    return Call(("SCHEDULE", name, "RUN"), replies.job_id)


def schedule_show(name: str) -> Call[Schedule]:
    """Return a schedule, its last run and its next one (SCHEDULE SHOW).

    Raises:
        NoSuchSchedule: there is no schedule of that name.
    """
    return Call(("SCHEDULE", name, "SHOW"), replies.schedule, repeat=True)


def schedules(pattern: str = "*") -> Call[list[Schedule]]:
    """Return the schedules whose names match a pattern, in the order of their names (SCHEDULE SHOW).

    Those of queues that the user may not access are left out.
    """
    return Call(("SCHEDULE", pattern, "SHOW"), replies.schedules, repeat=True)
