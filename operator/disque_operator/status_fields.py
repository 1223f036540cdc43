"""The `status` of a `DisqueCluster` as a model, from which its schema and its reference page are made.

The schema restricts no words such as phases and reasons: an older definition must accept what a newer operator writes.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema
from pydantic.alias_generators import to_camel

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.decisions import PHASES

Timestamp: TypeAlias = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
Number: TypeAlias = Annotated[int, WithJsonSchema({"type": "number"})]
"""Written as a whole number; the schema leaves room for fractions."""


def map_by(key: str) -> dict[str, JsonValue]:
    """Return the extension of a schema of a list whose entries are identified by a key."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}


class Part(BaseModel):
    """An object in a status."""

    model_config = ConfigDict(
        frozen=True, alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, extra="forbid"
    )


class Condition(Part):
    """A condition of the resource."""

    type: str = Field(description="The condition, such as Ready: see docs/operations/kubernetes.md.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether the condition holds.")
    reason: str = Field(description="Why, as one word for programs.")
    message: str = Field(description="Why, as a sentence for people, with what to do about it.")
    last_transition_time: Timestamp = Field(description="When `status` changed last.")
    observed_generation: int = Field(default=0, description="The generation of the resource that this describes.")


class Member(Part):
    """A member of the cluster."""

    pod: str = Field(description="The pod of the member.")
    node_id: str = Field(default="", description="The node ID; the last known one if the broker does not answer.")
    address: str = Field(default="", description="The host name by which other members reach it.")
    node: str = Field(default="", description="The Kubernetes node that runs the pod.")
    state: str = Field(default="", description="starting, loading, ready, leaving, unreachable or stopping.")
    version: str = Field(default="", description="Version of the broker.")
    jobs: int = Field(default=0, description="Jobs in the memory of the broker.")
    queued: int = Field(default=0, description="Jobs in the queues of the broker.")
    queues: int = Field(default=0, description="Queues of the broker.")
    used_memory: int = Field(default=0, description="Memory used for jobs, in bytes.")
    max_memory: int = Field(default=0, description="Memory limit for jobs, in bytes.")
    leaving: bool = Field(default=False, description="Whether the member is transferring its jobs.")
    safe_to_stop: bool = Field(
        default=False, description="Whether the pod can be stopped without losing or delaying any job."
    )
    message: str = Field(default="", description="What is wrong with the member; empty if nothing is.")


class JobCounts(Part):
    """Jobs of the whole cluster."""

    registered: int = Field(default=0, description="Jobs in the memory of all members; each copy counts.")
    queued: int = Field(default=0, description="Jobs in queues, waiting for a worker.")


class Binding(Part):
    """The Secret for clients, as the Service Binding specification finds it."""

    name: str = Field(description="The Secret with `type`, `provider`, `host`, `port`, `uri`, `username`, `password`.")


class DrainProgress(Part):
    """The drain that is in progress; absent if there is none."""

    pod: str = Field(default="", description="The pod that is drained.")
    node_id: str = Field(default="", description="Its node ID.")
    jobs_left: int = Field(default=0, description="Jobs that are not transferred yet.")
    ordered_replicas_left: int = Field(default=0, description="Replicas of ordered queues that it still has.")
    rate: Number = Field(default=0, description="Jobs transferred per second.")
    seconds_left: Number = Field(
        default=0, description="Estimated time until the drain is done; -1 while no job moves."
    )
    seconds_elapsed: Number = Field(default=0, description="Time since the drain started.")
    waits_for: str = Field(default="", description="Why jobs cannot be transferred; empty while they can.")
    started_at: Timestamp = Field(default="", description="When the drain started.")


class CertificateStatus(Part):
    """The certificate of the brokers."""

    secret_name: str = Field(default="", description="The Secret that the brokers read it from.")
    config_map: str = Field(
        default="", description="The ConfigMap with `ca.crt`, by which clients verify brokers. Everyone may read it."
    )
    issuer: str = Field(default="", description="Who signed it.")
    expires_at: Timestamp = Field(default="", description="When it expires.")
    authorities: int = Field(
        default=0, description="Number of authorities in `ca.crt`: two while a generated one is replaced."
    )


class MemberAddress(Part):
    """The address of a member for clients outside of Kubernetes."""

    pod: str = Field(description="The pod of the member.")
    address: str = Field(default="", description="host:port; the port for clients with TLS if there is one.")


class ExposureStatus(Part):
    """How clients outside of Kubernetes reach the members."""

    addresses: tuple[MemberAddress, ...] = Field(
        default=(),
        description="The members that can be reached. Clients need one or two of the addresses and learn the others.",
        json_schema_extra=map_by("pod"),
    )


class BackupStatus(Part):
    """The last scheduled backup."""

    last_success_time: Timestamp | None = Field(default=None, description="When a backup was completed last.")
    last_name: str | None = Field(
        default=None, description="Its name, for `bootstrap.fromBackup.name`; absent if it is not known."
    )
    last_jobs: int | None = Field(default=None, description="How many jobs it has; each counts once.")
    last_bytes: Number | None = Field(default=None, description="Its size in bytes.")
    last_failure_time: Timestamp | None = Field(
        default=None, description="When the last attempt failed; absent if it succeeded."
    )
    last_failure_message: str | None = Field(default=None, description="Why it failed.")
    prune_error: str | None = Field(default=None, description="Why old backups cannot be deleted.")


class BootstrapStatus(Part):
    """The backup of which the cluster was made."""

    backup: str | None = Field(default=None, description="Name of the backup.")
    members: int | None = Field(default=None, description="The number of members to which it is restored.")
    jobs: int | None = Field(default=None, description="How many jobs were restored; each counts once.")
    message: str | None = Field(default=None, description="Why the restore does not succeed; absent if it does.")
    completed_at: Timestamp | None = Field(
        default=None, description="When it was complete. Nothing is restored to the cluster afterwards."
    )


class OrderedStatus(Part):
    """The ordered queues of the cluster."""

    catalog: str = Field(
        default="", description="The identity of their catalog. The operator never founds another one."
    )
    leader: str = Field(default="", description="The pod that leads the catalog.")
    members: tuple[str, ...] = Field(
        default=(), description="The pods that keep the catalog, or the IDs of lost nodes."
    )
    queues: int = Field(default=0, description="Number of ordered queues.")
    without_leader: tuple[str, ...] = Field(
        default=(), description="Ordered queues that have no leader, so they are not served; the first 20 of them."
    )
    waiting_to_drop: tuple[str, ...] = Field(
        default=(), description="Ordered queues without a DisqueQueue, which are dropped when their jobs are finished."
    )


class ClusterStatus(Part):
    """The observed state of the cluster, and what the operator is doing."""

    observed_generation: int = Field(
        default=0, description="The generation of the resource that this status describes."
    )
    phase: str = Field(
        default="",
        description=f"{', '.join(PHASES[:-1])} or {PHASES[-1]}.",
    )
    message: str = Field(default="", description="What the operator is waiting for, or what you should do.")
    replicas: int = Field(default=0, description="Number of pods.")
    ready_replicas: int = Field(default=0, description="Number of pods that are ready for clients.")
    selector: str = Field(default="", description="Label selector of the pods, for `kubectl scale` and autoscalers.")
    version: str = Field(
        default="", description="Version of the brokers; all versions, separated by commas, if they differ."
    )
    image: str = Field(default="", description="Image of the pods.")
    available_image: str | None = Field(
        default=None,
        description="The image to which the cluster will be updated; the condition Updated says what it waits for.",
    )
    former_image: str | None = Field(default=None, description="The previous image, for a rollback.")
    operator: str | None = Field(
        default=None,
        description="The operator that acts on the cluster, as the namespace and name of its Lease. "
        f"To hand the cluster over, set the annotation {names.OPERATOR} to another one.",
    )
    endpoint: str = Field(default="", description="Address for clients: host:port of the client service.")
    exposure: ExposureStatus | None = None
    binding: Binding | None = None
    secret_name: str | None = Field(
        default=None,
        description="The Secret for clients, with the password in the key `password`; absent if there is no password.",
    )
    certificate: CertificateStatus | None = None
    backup: BackupStatus | None = None
    bootstrap: BootstrapStatus | None = None
    conditions: tuple[Condition, ...] = Field(
        default=(), description="Conditions of the cluster.", json_schema_extra=map_by("type")
    )
    members: tuple[Member, ...] = Field(
        default=(),
        description="Members of the cluster, ordered by the ordinals of their pods.",
        json_schema_extra=map_by("pod"),
    )
    jobs: JobCounts = JobCounts()
    ordered: OrderedStatus | None = None
    drain: DrainProgress | None = None

    def written(self) -> Json:
        """Return the status as the operator writes it to the resource."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)
