"""What runs the pods: the StatefulSet, the ServiceAccount of its pods, and the PodDisruptionBudget."""

from __future__ import annotations

from typing import Final

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.busmode import BusMode
from disque_operator.observed import Platform
from disque_operator.resources.common import Wanted, child, digest
from disque_operator.resources.pod_template import pod_template
from disque_operator.spec import Spec, SpecFields

_NOT_OF_PODS: Final = {*Spec.model_fields} - {*SpecFields.model_fields} | {
    "auth",
    "backup",
    "bootstrap",
    "drain",
    "exposure",
    "hibernate",
    "image",
    "min_replicas",
    "monitoring",
    "network_policy",
    "ordered",
    "paused",
    "pod_disruption_budget",
    "replicas",
    "service",
    "storage",
    "upgrade",
}
"""Fields that are not part of `spec_digest`, because they do not change the pod template; the image has its own
annotation. A field that is missing here only costs a write of the StatefulSet when it changes."""


def stateful_set(spec: Spec, wanted: Wanted) -> Json:
    """Return the StatefulSet. It creates pods and claims, all at once; only the operator replaces and deletes them."""
    template = pod_template(spec, wanted.image, wanted.bus, wanted.platform)
    body: Json = {
        "replicas": wanted.replicas,
        "serviceName": names.members_service(spec.name),
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"},
        "revisionHistoryLimit": 10,
        "selector": {"matchLabels": names.selector(spec.name)},
        "template": template,
    }
    if not spec.storage.ephemeral:
        body["persistentVolumeClaimRetentionPolicy"] = {"whenDeleted": "Retain", "whenScaled": "Retain"}
        body["volumeClaimTemplates"] = list(wanted.claim_templates) or [claim_template(spec)]
    annotations = {
        names.HIBERNATED_MEMBERS: str(wanted.hibernated_members or ""),
        names.IMAGE: wanted.image,
        names.UPDATE: wanted.update,
        names.SPEC_DIGEST: spec_digest(spec, wanted.bus),
        names.TEMPLATE_DIGEST: digest(template),
    }
    given = {name: text for name, text in annotations.items() if text}
    return child(spec, "apps/v1", "StatefulSet", names.stateful_set(spec.name), {"spec": body}, given)


def template_digest(spec: Spec, image: str, bus: BusMode, platform: Platform) -> str:
    """Return a digest of the pod template."""
    return digest(pod_template(spec, image, bus, platform))


def spec_digest(spec: Spec, bus: BusMode) -> str:
    """Return a digest of what people ask for, and of the step to it. New fields of an operator do not change it."""
    asked = spec.model_dump(mode="json", exclude_defaults=True, exclude=_NOT_OF_PODS)
    exposed = {"exposure": True} if spec.exposure is not None else {}  # only then pods have other ports
    return digest(asked | exposed | bus.arguments() | {"restart": spec.annotations.get(names.RESTART_AT, "")})


def claim_template(spec: Spec) -> Json:
    """Return the template of the volume claims."""
    claim: Json = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": spec.storage.size}},
    }
    if spec.storage.class_name is not None:
        claim["storageClassName"] = spec.storage.class_name
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": names.DATA, "labels": names.labels(spec.name)},
        "spec": claim,
    }


def service_account(spec: Spec) -> Json:
    """Return the account of the pods. It has no rights and mounts no token: brokers do not use the API server."""
    name = names.service_account(spec.name)
    return child(spec, "v1", "ServiceAccount", name, {"automountServiceAccountToken": False})


def disruption_budget(spec: Spec, wanted: Wanted) -> Json | None:
    """Return the PodDisruptionBudget, which makes a drained Kubernetes node evict pods one at a time.

    A pod that is not ready serves no client, so its eviction is always allowed: a crash-looping pod must not keep a
    Kubernetes node from being drained. Pods without a volume are not evicted at all, because their jobs would be lost:
    the operator drains and deletes those on a cordoned node, one by one.

    None if the spec disables it, if others have one for these pods, and for a single pod with a volume, whose eviction
    it would block forever.
    """
    drained = spec.storage.ephemeral and wanted.sees_nodes
    enabled = spec.pod_disruption_budget.enabled and not wanted.has_foreign_budget
    if not enabled or wanted.replicas < (1 if drained else 2):
        return None
    limits: Json = {
        "maxUnavailable": min(spec.pod_disruption_budget.max_unavailable, wanted.replicas - 1),
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }
    body = ({"maxUnavailable": 0} if drained else limits) | {"selector": {"matchLabels": names.selector(spec.name)}}
    return child(spec, "policy/v1", "PodDisruptionBudget", names.disruption_budget(spec.name), {"spec": body})
