"""What DisqueUsers, DisqueQueues and partly DisqueBackups share: specs, conditions, what happens without them.

A resource has no finalizer, so that a namespace can be deleted without an operator. Instead, the Secret of the cluster
keeps what was set (`observed.Kept`):

| observed | decision |
|---|---|
| a resource | keep its UID and its deletion policy |
| two resources with one name | the older one counts; the other one is not Ready |
| something is kept, its resource does not exist, policy Retain | nothing |
| policy Delete | note the time in the Secret first, then undo it on all brokers |
| that was ten minutes ago, and no broker that answers has it | forget it |

Ten minutes are for brokers that restart meanwhile: they may read a Secret that is a minute old.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from disque_operator import names
from disque_operator.actions import WriteStatus
from disque_operator.apivalues import Json, timestamp
from disque_operator.conditions import condition, dated
from disque_operator.members import ClusterView
from disque_operator.observed import Declared, Kept

FINAL: Final = ("Completed", "Failed")
"""Phases of a DisqueBackup that never change."""
REMEMBERED_S: Final = 600.0
"""How long a deleted user or queue is looked for on brokers, in seconds."""

Fields = TypeVar("Fields", bound=BaseModel)


@dataclass(frozen=True)
class Verdict:
    """A condition of a resource: whether it holds, the reason and the message."""

    holds: bool
    reason: str
    message: str

    def as_condition(self, kind: str) -> Json:
        """Return the condition, without its times."""
        return condition(kind, self.holds, self.reason, self.message)


@dataclass(frozen=True)
class Named(Generic[Fields]):
    """A resource with its parsed spec."""

    name: str
    """The name of the user or the queue."""
    declared: Declared
    fields: Fields

    @property
    def metadata(self) -> Json:
        """Return the metadata of the resource."""
        metadata: Json = self.declared.resource["metadata"]
        return metadata

    @property
    def status(self) -> Json:
        """Return the present status."""
        return self.declared.resource.get("status") or {}

    @property
    def generation(self) -> int:
        """Return the generation of the resource."""
        return int(self.metadata.get("generation") or 0)


def named(
    found: Sequence[Declared], model: type[Fields], name_field: str
) -> tuple[list[Named[Fields]], list[tuple[Declared, Verdict]]]:
    """Return the resources that count, and the others with what is wrong with them."""
    counted: dict[str, Named[Fields]] = {}
    others: list[tuple[Declared, Verdict]] = []
    for declared in found:
        metadata = declared.resource["metadata"]
        try:
            fields = model.model_validate(declared.resource.get("spec") or {})
        except ValidationError as error:
            others.append((declared, Verdict(False, "Invalid", f"the spec is invalid: {error.errors()[0]['msg']}")))
            continue
        name = getattr(fields, name_field) or metadata["name"]
        if name in counted:
            first = counted[name].metadata["name"]
            text = f"{declared.resource['kind']} {first} has the same name {name}, and is older: delete one of them"
            others.append((declared, Verdict(False, "NameTaken", text)))
            continue
        counted[name] = Named(name, declared, fields)
    return list(counted.values()), others


def without_resources(
    view: ClusterView, kept: Mapping[str, Kept], present: Mapping[str, str], set_somewhere: set[str]
) -> Iterator[tuple[str, Kept]]:
    """Yield what stays kept of what has no resource any more.

    `present` has the UIDs of the resources by name; `set_somewhere` are names that a broker which answers still has.
    """
    for name, entry in kept.items():
        if name in present:
            continue
        if entry.retain:
            yield name, entry
        elif not entry.removed_at:
            yield name, replace(entry, removed_at=timestamp(view.now_s))
        elif entry.removed_s_ago < REMEMBERED_S or name in set_somewhere:
            yield name, entry


def status_of(
    view: ClusterView, declared: Declared, verdicts: Mapping[str, Verdict], more: Json
) -> tuple[WriteStatus, ...]:
    """Return the action that writes the status of a resource, if it differs."""
    resource = declared.resource
    before: Json = resource.get("status") or {}
    generation = int(resource["metadata"].get("generation") or 0)
    found = [verdict.as_condition(kind) for kind, verdict in verdicts.items()]
    status = {
        "observedGeneration": generation,
        "conditions": dated(found, before.get("conditions") or (), generation, view.now_s),
        **more,
    }
    return (WriteStatus(resource, status, "it differs"),) if status != before else ()


def without_cluster(resource: Json, now_s: float) -> Json:
    """Return the status of a resource whose cluster does not exist."""
    before: Json = resource.get("status") or {}
    if before.get("phase") in FINAL:
        return before
    generation = int(resource["metadata"].get("generation") or 0)
    text = f"there is no DisqueCluster {names.cluster_of(resource)} in this namespace: create it, or delete this"
    kind = "Completed" if resource["kind"] == names.BACKUP_KIND else "Ready"
    found = [Verdict(False, "ClusterNotFound", text).as_condition(kind)]
    others = [entry for entry in before.get("conditions") or () if entry["type"] != kind]
    ready = dated(found, before.get("conditions") or (), generation, now_s)
    return {**before, "observedGeneration": generation, "conditions": [*ready, *others]}
