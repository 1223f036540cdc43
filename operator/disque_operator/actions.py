"""The actions that `plan` can request, as values. `executor` does them in order and stops at the first that fails.

Each action is idempotent and may be left out: the next round observes and plans again.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from disque_operator.apivalues import Json


@dataclass(frozen=True)
class Apply:
    """Server-side apply of a manifest, with the operator as field manager.

    The manifest of an existing object carries its `resourceVersion`. A conflict (409) means that the object has
    changed, so the next round must observe it again.
    """

    manifest: Json
    why: str
    field: str = ""
    """The field of an existing child that differs from the manifest, for example `spec.replicas`."""


@dataclass(frozen=True)
class Create:
    """Create an object that is never changed afterwards, such as a Job. It must not exist."""

    manifest: Json
    why: str


class Request(Protocol):
    """Something with a new key or secret, which is made only when its Secret is written."""

    def made(self) -> Mapping[str, str]:
        """Make it, and return the entries that keep it."""


@dataclass(frozen=True)
class Issue:
    """Make a new key or secret, and apply the manifest of the Secret that keeps it. It is like `Apply` otherwise."""

    manifest: Json
    request: Request
    why: str

    def filled(self) -> Json:
        """Return the manifest with what was made."""
        made = {name: b64encode(text.encode()).decode() for name, text in self.request.made().items()}
        return self.manifest | {"data": self.manifest["data"] | made}


@dataclass(frozen=True)
class DeleteChild:
    """Delete an object that is no longer desired, or a volume claim, if it has this UID."""

    kind: str
    name: str
    uid: str
    why: str


@dataclass(frozen=True)
class DeletePod:
    """Delete a pod if it has this UID. The broker shuts down in order; its file records what was queued."""

    name: str
    uid: str
    why: str
    evict: bool = False
    """Whether to evict it, which a PodDisruptionBudget can refuse."""


@dataclass(frozen=True)
class Command:
    """Send a command to the broker in a pod. It fails if the broker does not have this node ID."""

    pod: str
    node_id: str
    words: tuple[str, ...]
    why: str
    secret: bool = False
    """Whether the arguments must not be logged."""
    met: tuple[str, str] | None = None
    """For CLUSTER MEET: the pod and the node ID of the other broker. It must still answer with this ID, because MEET
    names only an address, which may belong to another broker by now."""


@dataclass(frozen=True)
class WriteStatus:
    """Replace the status of a resource of the cluster, such as a DisqueUser, if it has the observed UID."""

    resource: Json
    status: Json
    why: str


Action: TypeAlias = Apply | Create | Issue | DeleteChild | DeletePod | Command | WriteStatus
