"""The `spec` of a `DisqueQueue`: settings of a queue on all members of a cluster.

The pause of a queue is set on each member with PAUSE; the other settings are those that members share
(`queuesettings`).
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Field

from disque_operator.orderedspec import OrderedQueue, QueueType
from disque_operator.queuesettings import QueueSettings
from disque_operator.sections import Section, rule, rules
from disque_operator.userspec import ClusterReference, DeletionPolicy

Pause: TypeAlias = Literal["None", "In", "Out", "All"]


class QueueFields(Section):
    """The desired settings of the queue."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.queueName) == has(oldSelf.queueName) && "
                "(!has(self.queueName) || self.queueName == oldSelf.queueName)",
                "queueName cannot be changed: create another resource",
            ),
            rule(
                "!has(self.settings) || !has(self.queueName) || !self.queueName.matches('[*?[]')",
                "queueName is a pattern, and settings are for one queue: set those of patterns with QCONF",
            ),
            rule("self.type == oldSelf.type", "type cannot be changed: create another queue, and move the jobs there"),
            rule(
                "self.type == 'ordered' || !has(self.ordered)",
                "ordered has no effect without type: ordered: remove one of them",
            ),
            rule(
                "has(self.ordered) == has(oldSelf.ordered) && (!has(self.ordered) || self.ordered == oldSelf.ordered)",
                "ordered cannot be changed: create another queue, and move the jobs there",
            ),
            rule(
                "self.type == 'ordered' || !self.deleteJobs",
                "deleteJobs is for ordered queues, because other queues are not deleted with their resource: remove it",
            ),
            rule(
                "self.type != 'ordered' || !has(self.queueName) || !self.queueName.matches('[*?[]')",
                "queueName is a pattern, and an ordered queue has one name: choose another one",
            ),
            rule(
                "self.type != 'ordered' || !has(self.settings) || "
                "!(has(self.settings.replicate) || has(self.settings.priority))",
                "replicate and priority have no effect on ordered queues: remove them, and use ordered.replicas",
            ),
        )
    )

    cluster_ref: ClusterReference
    queue_name: Annotated[str, Field(min_length=1, max_length=256)] | None = Field(
        default=None, description="The name of the queue. Defaults to the name of the resource."
    )
    type: QueueType = Field(
        default="jobs",
        description="`jobs`: available at every member, without a strict order. `ordered`: in strict order, and served "
        "only where a majority of its replicas can be reached; the operator makes it.",
    )
    ordered: OrderedQueue | None = Field(default=None, description="Options of an ordered queue.")
    pause: Pause = Field(
        default="None",
        description="What is paused: `In` rejects new jobs, `Out` delivers none, `All` does both. Jobs that are in the "
        "queue stay there.",
    )
    settings: QueueSettings | None = Field(
        default=None,
        description="Settings that all members share. If it is given, the operator removes other settings of exactly "
        "this queue, except `pause`; without it, the operator leaves them to `QCONF`.",
    )
    on_drift: Literal["Restore", "Report"] = Field(
        default="Restore",
        description="What happens when somebody changes a setting on a member: `Restore` sets it again, `Report` only "
        "says so in the condition Drifted, until the spec changes.",
    )
    deletion_policy: DeletionPolicy = Field(
        default="Delete",
        description="What happens when the resource is deleted: `Delete` resumes the queue and removes what "
        "`settings` set, and drops an ordered queue when its jobs are finished; `Retain` keeps all. Jobs are never "
        "deleted, except with `deleteJobs`.",
    )
    delete_jobs: bool = Field(
        default=False,
        description="Whether an ordered queue is dropped with its jobs when the resource is deleted. By default, it is "
        "dropped when they are finished.",
    )
