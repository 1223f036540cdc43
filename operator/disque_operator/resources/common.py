"""What all manifests share: their inputs, their owner, and the digest that reveals removed fields."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.busmode import PLAIN, BusMode
from disque_operator.certificate_files import Authorities, CertificateRequest, TlsFiles
from disque_operator.observed import Kept, Passwords, Platform
from disque_operator.spec import Spec

DATA_PATH: Final = "/data"
CONFIG_PATH: Final = "/etc/disque"
AUTH_PATH: Final = "/etc/disque-auth"
CONFIG_FILE: Final = "disque.conf"
"""The file in CONFIG_PATH, which includes the file of the same name in AUTH_PATH."""


@dataclass(frozen=True)
class Certificates:
    """What the operator keeps about certificates; empty without TLS."""

    trusted: str = ""
    """The authorities that clients trust."""
    files: TlsFiles | None = None
    """The certificate of the brokers, if the operator signed it."""
    authorities: Authorities | None = None
    """The authorities of the cluster's own."""
    requests: Mapping[str, CertificateRequest] = field(default_factory=dict)
    """Certificates to make and put into these Secrets, by name."""
    external_names: tuple[str, ...] = ()
    """The names of members for clients outside of Kubernetes, which cert-manager is asked for too."""


@dataclass(frozen=True)
class Wanted:
    """What `plan` decides about the objects, beside the spec."""

    replicas: int
    """Replicas of the StatefulSet. Differs from the spec during a drain and while the cluster hibernates."""
    passwords: Passwords | None = None
    """Passwords for the Secret `names.auth_secret`; None if there never was one. The configuration file in the Secret
    is empty while passwords are switched off, so that switching them does not change the pod template."""
    certificates: Certificates = field(default_factory=Certificates)
    bus: BusMode = PLAIN
    """How new pods protect the bus."""
    bus_files: Mapping[str, str] = field(default_factory=dict)
    """The files with cluster secrets."""
    hibernated_members: int = 0
    """Number of hibernated members, for the annotation names.HIBERNATED_MEMBERS; 0 for no annotation."""
    claim_templates: tuple[Json, ...] = ()
    """`spec.volumeClaimTemplates` of the live StatefulSet, which is immutable: claims are expanded one by one instead.
    Empty if there is no StatefulSet yet."""
    image: str = ""
    """The image of the pods."""
    update: str = ""
    """The annotation names.UPDATE of the StatefulSet; empty for no annotation."""
    has_foreign_budget: bool = False
    """Whether a PodDisruptionBudget of others covers the pods. Kubernetes evicts no pod that two budgets cover."""
    sees_nodes: bool = True
    """Whether the operator sees cordoned Kubernetes nodes, so that it can drain members before they are evicted."""
    operator_namespace: str = ""
    """The namespace of the operator's pods, which the NetworkPolicy admits; empty if it does not run in a pod."""
    users: Mapping[str, Kept] = field(default_factory=dict)
    queues: Mapping[str, Kept] = field(default_factory=dict)
    schedules: Mapping[str, Kept] = field(default_factory=dict)
    """What the Secret `names.auth_secret` keeps about users, queues and schedules, by name."""
    platform: Platform = field(default_factory=Platform)
    waits_for_restore: bool = False
    """Whether the StatefulSet must not be created yet, because a backup is being restored to its volumes."""


def child(
    spec: Spec,
    api_version: str,
    kind: str,
    name: str,
    body: Json,
    annotations: Json | None = None,
    labels: Mapping[str, str] | None = None,
) -> Json:
    """Return the manifest of an object that is owned by the resource, and so is deleted with it."""
    manifest = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": spec.namespace,
            "labels": {**(labels or {}), **names.labels(spec.name)},
            "annotations": annotations or {},
            "ownerReferences": [_owner(spec)],
        },
        **body,
    }
    manifest["metadata"]["annotations"] |= {names.APPLIED: manifest_digest(manifest)}
    return manifest


def _owner(spec: Spec) -> Json:
    """Return the owner reference to the resource. It does not block the deletion of the resource."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "name": spec.name,
        "uid": spec.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def manifest_digest(manifest: Json) -> str:
    """Return a digest of a manifest.

    Of Secrets only the keys count: their values are compared anyway. Claim templates do not count: they cannot change,
    and those of a live StatefulSet, which its manifest repeats, also have what the API server adds to them.
    """
    match manifest["kind"]:
        case "Secret":
            return digest(manifest | {"data": sorted(manifest["data"])})
        case "StatefulSet":
            counted = {name: value for name, value in manifest["spec"].items() if name != "volumeClaimTemplates"}
            return digest(manifest | {"spec": counted})
        case _:
            return digest(manifest)


def digest(value: Json) -> str:
    """Return a digest of an object, whatever the order of its fields."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
