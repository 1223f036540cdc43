"""The field `ordered` of a `DisqueCluster` and of a `DisqueQueue`: ordered queues, which Raft replicates."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Field

from disque_operator.sections import Section, rule, rules

QueueType: TypeAlias = Literal["jobs", "ordered"]
Replicas: TypeAlias = Annotated[int, Field(ge=1, le=5)]
_ODD = "self.replicas % 2 == 1"
_WHY_ODD = "ordered.replicas must be 1, 3 or 5: an even number tolerates no more failures than the odd number below it"


class OrderedQueues(Section):
    """Ordered queues, which keep the order of jobs and deliver each to one worker at a time."""

    model_config = ConfigDict(json_schema_extra=rules(rule(_ODD, _WHY_ODD)))

    enabled: bool = Field(
        default=False,
        description="Whether the cluster can have ordered queues. The operator founds their catalog once, on up to "
        "five members. `false` has no effect on a catalog that exists.",
    )
    replicas: Replicas = Field(
        default=3, description="How many members keep an ordered queue whose DisqueQueue says nothing: 1, 3 or 5."
    )


class OrderedQueue(Section):
    """Options of an ordered queue, which never change."""

    model_config = ConfigDict(json_schema_extra=rules(rule(f"!has(self.replicas) || {_ODD}", _WHY_ODD)))

    replicas: Replicas | None = Field(
        default=None, description="How many members keep the queue: 1, 3 or 5. Defaults to that of the cluster."
    )
    single: bool = Field(
        default=False, description="Whether only one consumer at a time gets jobs; the others wait until it is gone."
    )
    prefetch: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        default=None, description="How many jobs a consumer may have at a time. Defaults to any number."
    )
