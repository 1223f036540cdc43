"""The StatefulSet: it makes pods and claims, all at once. The operator alone replaces pods and deletes claims."""

from __future__ import annotations

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.resources.common import child
from disque_operator.resources.pod_template import pod_template
from disque_operator.spec import Spec
from disque_operator.wanted import Wanted


def stateful_set(spec: Spec, wanted: Wanted) -> Json:
    """The StatefulSet."""
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
    annotations = {names.ASLEEP: str(wanted.asleep)} if wanted.asleep else {}
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
