"""The `spec` of a `DisqueSchedule`: a schedule of a cluster, which adds jobs at given times (SCHEDULE)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field

from disque_operator.queuesettings import PositiveSeconds, Seconds
from disque_operator.sections import Section, rule, rules
from disque_operator.userspec import ClusterReference, DeletionPolicy

_UNZONED: Final = ("every", "at")
"""The first words of times that have no time zone."""


class JobOptions(Section):
    """Options of the jobs. Those that are not given come from the settings of the queue, or are the defaults."""

    replicate: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        default=None, description="How many members keep a copy."
    )
    delay_s: Seconds | None = Field(default=None, description="How long a job waits before its first delivery.")
    retry_s: Seconds | None = Field(
        default=None, description="How long a worker has for a job before it is delivered again."
    )
    ttl_s: PositiveSeconds | None = Field(default=None, description="How long a job lives.")
    maxlen: Annotated[int, Field(ge=1, le=2147483647)] | None = Field(
        default=None, description="No job is added while the queue has this many."
    )
    priority: Annotated[int, Field(ge=-2147483648, le=2147483647)] | None = Field(
        default=None, description="Jobs with a higher priority are delivered first."
    )
    retain_s: Annotated[int, Field(ge=0, le=2592000)] | None = Field(
        default=None, description="How long a record of a finished job is kept."
    )

    @property
    def words(self) -> tuple[str, ...]:
        """The options as in ADDJOB, in the order in which SCHEDULE SHOW returns them."""
        values = {
            "REPLICATE": self.replicate,
            "DELAY": self.delay_s,
            "RETRY": self.retry_s,
            "TTL": self.ttl_s,
            "MAXLEN": self.maxlen,
            "PRIORITY": self.priority,
            "RETAIN": self.retain_s,
        }
        return tuple(word for name, value in values.items() if value is not None for word in (name, str(value)))


class ScheduleFields(Section):
    """The desired schedule."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.scheduleName) == has(oldSelf.scheduleName) && "
                "(!has(self.scheduleName) || self.scheduleName == oldSelf.scheduleName)",
                "scheduleName cannot be changed: create another resource",
            ),
            rule(
                "!has(self.timeZone) || !self.when.matches('^(every|at) ')",
                "timeZone is of use with a cron line only: remove it, or change when",
            ),
        )
    )

    cluster_ref: ClusterReference
    schedule_name: Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[^*?\[]+$")] | None = Field(
        default=None, description="The name of the schedule. Defaults to the name of the resource."
    )
    when: Annotated[str, Field(min_length=1, max_length=256)] = Field(
        description="When it is due: a cron line of 5 fields, or of 6 with seconds first; `@hourly`, `@daily`, "
        "`@weekly`, `@monthly`, `@yearly`; `every 30 s`, with s, m, h or d; or `at` with unix milliseconds."
    )
    time_zone: Annotated[str, Field(min_length=1, max_length=64)] | None = Field(
        default=None, description="The time zone of a cron line, such as `Europe/Berlin`. Defaults to UTC."
    )
    queue: Annotated[str, Field(min_length=1, max_length=256)] = Field(description="The queue of the jobs.")
    body: Annotated[str, Field(max_length=16384)] = Field(default="", description="The body of the jobs.")
    job: JobOptions = Field(default=JobOptions(), description="Options of the jobs.")
    missed: Literal["Skip", "Once"] = Field(
        default="Skip",
        description="What happens to times that were missed: `Skip` skips those that are more than a minute late, "
        "`Once` makes up for the latest one, however late.",
    )
    strict: bool = Field(
        default=True,
        description="Whether the schedule runs only on the side of a partition that has the majority of the members, "
        "so that it never runs twice.",
    )
    paused: bool = Field(default=False, description="Whether it rests. Times meanwhile do not count as missed.")
    deletion_policy: DeletionPolicy = Field(
        default="Delete",
        description="What happens when the resource is deleted: `Delete` removes the schedule, `Retain` keeps it. Jobs "
        "are never deleted.",
    )

    @property
    def shown(self) -> dict[str, str]:
        """What SCHEDULE SHOW says of this schedule, as far as the spec decides it."""
        when = " ".join(self.when.split())
        unzoned = when.split(" ", 1)[0].lower() in _UNZONED
        return {
            "when": when,
            "zone": "" if unzoned else self.time_zone or "UTC",
            "queue": self.queue,
            "body": self.body,
            "options": " ".join(self.job.words),
            "missed": self.missed.lower(),
            "strict": "yes" if self.strict else "no",
            "paused": "yes" if self.paused else "no",
        }

    @property
    def set_words(self) -> tuple[str, ...]:
        """The words of SCHEDULE SET behind SET."""
        zone = ("TZ", self.time_zone) if self.time_zone is not None else ()
        strict = "yes" if self.strict else "no"
        policies = ("MISSED", self.missed.lower(), "STRICT", strict)
        return (self.when, self.queue, self.body, *zone, *policies, *self.job.words)
