"""What a person asks for: the `spec` of a `DisqueCluster`, as values with every default filled in.

The fields, their defaults and the rules that the API server checks stand in `manifests/crd`; `parse` trusts that they
were checked. Defaults are filled in here as well (an object may be older than the schema) and never written back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]

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
    """Merged over the pod template; what the cluster depends on stays (`resources.pods`)."""
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


def parse(body: Mapping[str, Any]) -> Spec:
    """The spec of an object as the API server returns it."""
    raise NotImplementedError
