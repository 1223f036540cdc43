"""The `status` of a `DisqueUser`, `DisqueQueue`, `DisqueSchedule` and `DisqueBackup` as models."""

from __future__ import annotations

from pydantic import Field

from disque_operator.apivalues import Json
from disque_operator.status_fields import Binding, Condition, Number, Part, Timestamp, map_by


class PartStatus(Part):
    """The observed state."""

    observed_generation: int = Field(
        default=0, description="The generation of the resource that this status describes."
    )
    conditions: tuple[Condition, ...] = Field(
        default=(), description="Conditions of the resource.", json_schema_extra=map_by("type")
    )

    def written(self) -> Json:
        """Return the status as the operator writes it to the resource."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class UserStatus(PartStatus):
    """The observed state of the user."""

    user_name: str = Field(default="", description="The name with which clients log in.")
    secret_name: str | None = Field(
        default=None, description="The Secret with the password; absent if the user logs in with a certificate."
    )
    binding: Binding | None = None


class OrderedQueueStatus(Part):
    """Where an ordered queue is."""

    leader: str = Field(default="", description="The pod that leads it; empty while there is none.")
    replicas: tuple[str, ...] = Field(default=(), description="The pods that keep it, or the IDs of lost nodes.")


class QueueStatus(PartStatus):
    """The observed state of the queue."""

    queue_name: str = Field(default="", description="The name of the queue.")
    applied_generation: int = Field(
        default=0, description="The generation of the resource whose settings all members have had."
    )
    ordered: OrderedQueueStatus | None = None


class ScheduleStatus(PartStatus):
    """The observed state of the schedule."""

    schedule_name: str = Field(default="", description="The name of the schedule.")
    applied_generation: int = Field(default=0, description="The generation of the resource that all members have had.")


class BackupRunStatus(PartStatus):
    """What became of the backup."""

    phase: str = Field(default="", description="Pending, Running, Completed or Failed. The last two never change.")
    message: str = Field(default="", description="What it waits for, or why it failed.")
    job_name: str = Field(default="", description="The Job that makes it.")
    start_time: Timestamp | None = Field(default=None, description="When the Job started.")
    completion_time: Timestamp | None = Field(default=None, description="When the backup was complete, or failed.")
    backup_name: str = Field(default="", description="The name of the backup, for `bootstrap.fromBackup.name`.")
    jobs: int = Field(default=0, description="How many jobs it has; each counts once.")
    bytes: Number = Field(default=0, description="Its size in bytes.")
