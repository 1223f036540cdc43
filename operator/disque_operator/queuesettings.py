"""The field `settings` of a `DisqueQueue`: settings of a queue that all members share (QCONF of the broker)."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Field

from disque_operator.sections import Section, rule, rules

Seconds: TypeAlias = Annotated[int, Field(ge=0, le=4294967295)]
PositiveSeconds: TypeAlias = Annotated[int, Field(ge=1, le=4294967295)]
Milliseconds: TypeAlias = Annotated[int, Field(ge=1, le=2592000000)]
Bound: TypeAlias = Annotated[int, Field(ge=1, le=9007199254740992)]
Limit: TypeAlias = Annotated[int, Field(ge=1, le=1000000)]
Rate: TypeAlias = Annotated[
    str, Field(max_length=20, pattern=r"^(0\.0{0,2}[1-9]\d{0,3}|[1-9]\d{0,5}(\.\d{1,6})?)/[smhd]$")
]
"""At least 0.001, as for the broker, which also takes a number without a unit."""
QueueName: TypeAlias = Annotated[str, Field(min_length=1, max_length=256, pattern=r"""^[^\s"']+$""")]


class QueueBackoff(Section):
    """How long a job waits after a NACK: longer after each attempt."""

    model_config = ConfigDict(
        json_schema_extra=rules(rule("self.minMs <= self.maxMs", "backoff.maxMs must be at least backoff.minMs"))
    )

    min_ms: Milliseconds = Field(description="Milliseconds after the first attempt.")
    max_ms: Milliseconds = Field(description="The longest time in milliseconds.")
    factor: Annotated[float, Field(ge=1, le=100)] = Field(
        default=2.0, description="By how much the time grows with each attempt."
    )

    @property
    def words(self) -> str:
        """Return the value of the setting."""
        return f"{self.min_ms} {self.max_ms} {self.factor:g}"


class QueueSettings(Section):
    """Settings of the queue, the same on all members. A setting that is not given may come from a pattern."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!has(self.copyTo) || size(bytes(self.copyTo.join(' '))) <= 1024",
                "copyTo must have at most 1024 bytes in all",
            )
        )
    )

    retry_s: Seconds | None = Field(default=None, description="RETRY of jobs that are added without it.")
    ttl_s: PositiveSeconds | None = Field(default=None, description="TTL of jobs that are added without it.")
    replicate: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        default=None, description="REPLICATE of jobs that are added without it."
    )
    priority: Annotated[int, Field(ge=-2147483648, le=2147483647)] | None = Field(
        default=None, description="Priority of jobs that are added without one."
    )
    retain_s: Annotated[int, Field(ge=0, le=2592000)] | None = Field(
        default=None, description="How long a record of a finished job is kept."
    )
    maxlen: Bound | None = Field(
        default=None, description="How many jobs each member has in the queue before new ones are refused."
    )
    maxbytes: Bound | None = Field(default=None, description="The same for the bytes of their bodies.")
    overflow: Literal["Reject", "DropOldest"] | None = Field(
        default=None,
        description="What happens to a new job at these limits: `Reject` refuses it, `DropOldest` deletes the oldest "
        "jobs of the queue.",
    )
    backoff: QueueBackoff | None = Field(default=None, description="How long a job waits after a NACK.")
    limit: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        default=None, description="After so many attempts a job becomes a dead letter."
    )
    dead: QueueName | None = Field(
        default=None, description="The queue of dead letters, or `drop` for none. Defaults to the name with `.dead`."
    )
    dead_ttl_s: PositiveSeconds | None = Field(default=None, description="How long a dead letter lives.")
    dead_expired: bool | None = Field(
        default=None, description="Whether a job that expires unacknowledged becomes a dead letter."
    )
    copy_to: Annotated[list[QueueName], Field(min_length=1, max_length=16)] | None = Field(
        default=None, description="Queues to which each job is added as well."
    )
    rate: Rate | None = Field(
        default=None,
        description="How many jobs all members together deliver, as `10/s`, `0.5/s`, `90/m`, `100/h` or `5/d`.",
    )
    burst: Limit | None = Field(
        default=None,
        description="How many deliveries the rate allows at once. Defaults to a tenth of what it allows per second.",
    )
    inflight: Limit | None = Field(
        default=None, description="How many jobs workers have at a time, in the whole cluster."
    )
    consumer_timeout_s: Annotated[int, Field(ge=1, le=86400)] | None = Field(
        default=None,
        description="After this time, a consumer of an ordered queue with `single` that neither has a job nor asks for "
        "one loses its place. Defaults to 60.",
    )

    @property
    def values(self) -> dict[str, str]:
        """Return the settings that are given, by their names on the broker."""
        found: dict[str, object] = {
            "retry": self.retry_s,
            "ttl": self.ttl_s,
            "replicate": self.replicate,
            "priority": self.priority,
            "retain": self.retain_s,
            "maxlen": self.maxlen,
            "maxbytes": self.maxbytes,
            "overflow": None if self.overflow is None else _OVERFLOWS[self.overflow],
            "backoff": None if self.backoff is None else self.backoff.words,
            "limit": self.limit,
            "dead": self.dead,
            "dead-ttl": self.dead_ttl_s,
            "dead-expired": None if self.dead_expired is None else ("yes" if self.dead_expired else "no"),
            "copy-to": None if self.copy_to is None else " ".join(self.copy_to),
            "rate": self.rate,
            "burst": self.burst,
            "inflight": self.inflight,
            "consumer-timeout": self.consumer_timeout_s,
        }
        return {name: str(value) for name, value in found.items() if value is not None}


_OVERFLOWS = {"Reject": "reject", "DropOldest": "drop-oldest"}
