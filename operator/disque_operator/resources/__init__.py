"""The objects of a cluster as manifests, and whether a live object matches its manifest.

Volume claims are not among them, because the StatefulSet creates them. All objects are owned by the resource and are
deleted with it. Pods satisfy the Pod Security Standard `restricted`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.directives import same, settings
from disque_operator.resources.common import Certificates, Wanted
from disque_operator.resources.comparing import differs
from disque_operator.resources.configuration import client_secret, config_map, secret
from disque_operator.resources.encryption import bus_secret, certificate_objects
from disque_operator.resources.monitoring import pod_monitor
from disque_operator.resources.network import client_service, external_service, members_service, network_policy
from disque_operator.resources.workload import (
    disruption_budget,
    service_account,
    spec_digest,
    stateful_set,
    template_digest,
)
from disque_operator.spec import Spec

__all__ = [
    "Certificates",
    "Wanted",
    "bus_secret",
    "certificate_objects",
    "desired",
    "differs",
    "external_service",
    "has_owner",
    "is_ours",
    "same",
    "settings",
    "spec_digest",
    "surplus",
    "template_digest",
]

_OPTIONAL: Final = ("Certificate", "ConfigMap", "PodDisruptionBudget", "PodMonitor", "NetworkPolicy")


def desired(spec: Spec, wanted: Wanted) -> tuple[Json, ...]:
    """Return the manifests of all objects, in the order of creation: the StatefulSet needs the others."""
    manifests = (
        service_account(spec),
        config_map(spec),
        secret(spec, wanted),
        client_secret(spec, wanted.passwords, wanted.certificates.trusted),
        *certificate_objects(spec, wanted.certificates),
        bus_secret(spec, wanted.bus_files) if wanted.bus_files else None,
        members_service(spec),
        client_service(spec),
        network_policy(spec, wanted.operator_namespace),
        disruption_budget(spec, wanted),
        pod_monitor(spec) if wanted.platform.pod_monitors else None,
        None if wanted.waits_for_restore else stateful_set(spec, wanted),
    )
    return tuple(manifest for manifest in manifests if manifest is not None)


def surplus(manifests: tuple[Json, ...], children: Mapping[tuple[str, str], Json]) -> tuple[Json, ...]:
    """Return live objects of the resource that are no longer desired. Only objects of optional kinds can be."""
    kept = {(manifest["kind"], manifest["metadata"]["name"]) for manifest in manifests}
    (owner,) = manifests[0]["metadata"]["ownerReferences"]
    return tuple(
        live
        for (kind, name), live in children.items()
        if kind in _OPTIONAL and (kind, name) not in kept and has_owner(live, owner["uid"])
    )


def has_owner(live: Json, uid: str) -> bool:
    """Return whether a live object is owned by the resource with this UID."""
    return any(owner.get("uid") == uid for owner in live["metadata"].get("ownerReferences") or ())


def is_ours(live: Json, spec: Spec) -> bool:
    """Return whether an object is owned by the resource, or has no owner and the label of the cluster."""
    metadata = live["metadata"]
    owners = [owner for owner in metadata.get("ownerReferences") or () if owner.get("controller")]
    if owners:
        return any(owner.get("uid") == spec.uid for owner in owners)
    return bool((metadata.get("labels") or {}).get(names.CLUSTER_LABEL) == spec.name)
