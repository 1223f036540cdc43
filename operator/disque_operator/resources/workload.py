"""What runs the pods: the StatefulSet, the ServiceAccount of its pods, and the PodDisruptionBudget."""

from __future__ import annotations

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.resources.common import Wanted, child
from disque_operator.resources.pod_template import pod_template
from disque_operator.spec import Spec


def stateful_set(spec: Spec, wanted: Wanted) -> Json:
    """Return the StatefulSet. It creates pods and claims, all at once; only the operator replaces and deletes them."""
    body: Json = {
        "replicas": wanted.replicas,
        "serviceName": names.members_service(spec.name),
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"},
        "revisionHistoryLimit": 10,
        "selector": {"matchLabels": names.selector(spec.name)},
        "template": pod_template(spec),
    }
    if not spec.storage.ephemeral:
        body["persistentVolumeClaimRetentionPolicy"] = {"whenDeleted": "Retain", "whenScaled": "Retain"}
        body["volumeClaimTemplates"] = list(wanted.claim_templates) or [_claim_template(spec)]
    members = wanted.hibernated_members
    annotations = {names.HIBERNATED_MEMBERS: str(members)} if members else {}
    return child(spec, "apps/v1", "StatefulSet", names.stateful_set(spec.name), {"spec": body}, annotations)


def _claim_template(spec: Spec) -> Json:
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


def disruption_budget(spec: Spec, replicas: int) -> Json | None:
    """Return the PodDisruptionBudget, which makes a drained Kubernetes node evict pods one at a time.

    None if the spec disables it, and for a single pod, whose eviction it would block forever.
    """
    if not spec.pod_disruption_budget.enabled or replicas < 2:
        return None
    body = {
        "maxUnavailable": spec.pod_disruption_budget.max_unavailable,
        "selector": {"matchLabels": names.selector(spec.name)},
    }
    return child(spec, "policy/v1", "PodDisruptionBudget", names.disruption_budget(spec.name), {"spec": body})
