"""What a person asks for: the `spec` of a `DisqueCluster`, as values with every default filled in.

The fields, their defaults and the rules that the API server checks stand in `manifests/crd`; `parse` trusts that they
were checked. Defaults are filled in here as well (an object may be older than the schema) and never written back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

Json = dict[str, Any]

_T = TypeVar("_T")

OnTimeout = Literal["Wait", "Handoff", "Force"]
Fsync = Literal["always", "everysec", "no"]
Retention = Literal["Retain", "Delete"]


@dataclass(frozen=True)
class Storage:
    """The volume of each pod."""

    ephemeral: bool = False
    """No volume: a pod that goes is drained first, and comes back as a new node."""
    size: str = "2Gi"
    class_name: str | None = None
    when_deleted: Retention = "Retain"
    when_scaled: Retention = "Delete"
    """Of pods that were drained; volumes that still hold jobs are kept whatever this says."""


@dataclass(frozen=True)
class Persistence:
    """The append only file."""

    appendonly: bool = True
    fsync: Fsync = "everysec"


@dataclass(frozen=True)
class Auth:
    """The password of the nodes."""

    enabled: bool = True
    secret_name: str | None = None
    """A Secret of the user's with the key `password`; otherwise one is generated."""
    rotation: int = 0
    """A new number has a new password generated."""
    grace_s: int = 300
    """The former password is accepted for so long."""


@dataclass(frozen=True)
class ClientService:
    """The service that clients use."""

    type: str = "ClusterIP"
    annotations: Mapping[str, str] = field(default_factory=dict)
    port: int = 7711


@dataclass(frozen=True)
class Budget:
    """The PodDisruptionBudget; there is none for a single node, which it would only block."""

    enabled: bool = True
    max_unavailable: int = 1


@dataclass(frozen=True)
class Network:
    """The NetworkPolicy."""

    enabled: bool = True
    clients: tuple[Json, ...] = ()
    """NetworkPolicyPeers that may reach the port for clients and the HTTP port; empty for everybody."""


@dataclass(frozen=True)
class Drain:
    """How a pod is emptied before it goes."""

    timeout_s: int = 3600
    on_timeout: OnTimeout = "Wait"
    """`Wait` goes on draining; `Handoff` stops the pod and keeps its volume with the jobs that are left; `Force` drops
    them, with the consent ALLOW_JOB_LOSS."""


@dataclass(frozen=True)
class Upgrade:
    """How pods are replaced."""

    soak_s: int = 5
    """All is well for so long before the next pod is replaced."""
    timeout_s: int = 600
    """A replaced pod that is not back by then is told of as failed; the roll-out waits, it never goes on by itself."""


@dataclass(frozen=True)
class Spec:
    """All of it."""

    name: str
    namespace: str
    uid: str
    generation: int
    replicas: int = 3
    min_replicas: int = 1
    """Fewer members than this are never left by a shrink."""
    image: str | None = None
    """None: the operator's default."""
    image_pull_policy: str | None = None
    image_pull_secrets: tuple[str, ...] = ()
    resources: Json = field(default_factory=dict)
    storage: Storage = Storage()
    persistence: Persistence = Persistence()
    config: Mapping[str, str] = field(default_factory=dict)
    """Directives of the broker by name."""
    maxmemory: str = "auto"
    """`auto`: by the memory limit, as docs/operations/memory.md says."""
    auth: Auth = Auth()
    service: ClientService = ClientService()
    affinity: Json | None = None
    """None: pods prefer different machines."""
    tolerations: tuple[Json, ...] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    topology_spread: tuple[Json, ...] | None = None
    """None: pods spread over zones where that is possible."""
    priority_class: str | None = None
    pod_template: Json = field(default_factory=dict)
    """Merged over the pod template; what the cluster depends on stays (`resources.protected`)."""
    budget: Budget = Budget()
    network: Network = Network()
    drain: Drain = Drain()
    upgrade: Upgrade = Upgrade()
    paused: bool = False
    """Nothing is done but looking; a drain that runs goes on in the node, no pod goes."""
    hibernate: bool = False
    """All nodes are stopped with their jobs on their volumes; undone by taking it back."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Of the resource."""
    deleting: bool = False


_RENAMED: Final = {
    "topology_spread": "topologySpreadConstraints",
    "priority_class": "priorityClassName",
    "budget": "podDisruptionBudget",
    "network": "networkPolicy",
}
_WORDS_OF_SECONDS: Final = "_s"


def field_name(attribute: str) -> str:
    """How an attribute of these classes is written in the resource: `timeout_s` is `timeoutSeconds`."""
    if attribute in _RENAMED:
        return _RENAMED[attribute]
    first, *rest = (f"{attribute}econds" if attribute.endswith(_WORDS_OF_SECONDS) else attribute).split("_")
    return first + "".join(word.capitalize() for word in rest)


def parse(body: Mapping[str, Any]) -> Spec:
    """The spec of an object as the API server returns it."""
    metadata, spec = body.get("metadata") or {}, body.get("spec") or {}
    sections = {
        "storage": _storage(spec.get("storage") or {}),
        "persistence": _section(Persistence, spec.get("persistence")),
        "auth": _section(Auth, spec.get("auth")),
        "service": _section(ClientService, spec.get("service")),
        "budget": _section(Budget, spec.get("podDisruptionBudget")),
        "network": _network(spec.get("networkPolicy") or {}),
        "drain": _section(Drain, spec.get("drain")),
        "upgrade": _section(Upgrade, spec.get("upgrade")),
        "image_pull_secrets": tuple(secret["name"] for secret in spec.get("imagePullSecrets") or ()),
        "tolerations": tuple(spec.get("tolerations") or ()),
    }
    spread = spec.get("topologySpreadConstraints")
    given = {
        attribute.name: spec[key]
        for attribute in dataclasses.fields(Spec)
        if attribute.name not in sections and spec.get(key := field_name(attribute.name)) is not None
    }
    return Spec(
        **given
        | sections
        | {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata.get("uid", ""),
            "generation": metadata.get("generation", 0),
            "annotations": metadata.get("annotations") or {},
            "deleting": "deletionTimestamp" in metadata,
            "topology_spread": None if spread is None else tuple(spread),
        }
    )


def _section(kind: type[_T], given: Json | None) -> _T:
    """The fields that are there, by their names in the resource; the others keep their defaults."""
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]  # all sections are dataclasses
    found = {field.name: (given or {}).get(field_name(field.name)) for field in fields}
    return kind(**{name: value for name, value in found.items() if value is not None})


def _storage(given: Json) -> Storage:
    return _section(Storage, given | (given.get("retention") or {}))


def _network(given: Json) -> Network:
    return dataclasses.replace(_section(Network, given), clients=tuple(given.get("clients") or ()))
