"""The plain manifests, without the operator: the cluster forms, restarts pod by pod, and recovers from an outage."""

from __future__ import annotations

import base64

import pytest

from e2e.support.cluster import SMALL, Members, is_ready
from e2e.support.kube import Json, Kube
from e2e.support.load import Load
from e2e.support.operators import documents
from e2e.support.settings import ROOT, Settings

PLAIN = ROOT / "manifests" / "plain"
PASSWORD = "own password"


@pytest.fixture
def plain(kube: Kube, namespace: str, settings: Settings) -> Members:
    """A cluster from the plain manifests, with the image under test and small pods and volumes."""
    secret = {"password": PASSWORD, "disque.conf": f'requirepass "{PASSWORD}"\n'}
    data = {name: base64.b64encode(text.encode()).decode() for name, text in secret.items()}
    metadata = {"name": "disque-auth", "namespace": namespace}
    kube.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
    for manifest in documents(PLAIN):
        if manifest["kind"] != "Kustomization":
            manifest["metadata"]["namespace"] = namespace
            kube.apply(small(manifest, settings.image))
    return Members(kube, namespace, "disque")


def small(manifest: Json, image: str) -> Json:
    """Set the image under test and small resources."""
    if manifest["kind"] == "StatefulSet":
        spec = manifest["spec"]
        spec["template"]["spec"]["containers"][0] |= {"image": image, "resources": SMALL}
        spec["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"] = "64Mi"
    return manifest


def test_plain_cluster_forms_restarts_and_recovers(plain: Members, kube: Kube, settings: Settings) -> None:
    plain.wait_pods(lambda pods: sum(map(is_ready, pods)) == 3, "three pods are ready")
    plain.wait_formed(3)
    ids = plain.ids()
    uids = {pod["metadata"]["uid"] for pod in plain.pods()}
    with Load(kube, plain, settings.image) as load:
        change = {"metadata": {"annotations": {"restarted": "once"}}}
        kube.patch("StatefulSet", "disque", plain.namespace, {"spec": {"template": change}})
        plain.wait_pods(lambda pods: all_new(pods, uids), "all pods were replaced", within_s=240)
        plain.wait_formed(3)
        account = load.settle()
    assert plain.ids() == ids
    account.check(at_least=500)

    uids = {pod["metadata"]["uid"] for pod in plain.pods()}
    for pod in plain.pod_names():
        kube.delete("Pod", pod, plain.namespace, grace_s=0)
    plain.wait_pods(lambda pods: all_new(pods, uids), "all pods are back")
    plain.wait_formed(3)
    assert plain.ids() == ids


def all_new(pods: list[Json], uids: set[str]) -> bool:
    """Return whether three new pods are ready."""
    return sum(is_ready(pod) and pod["metadata"]["uid"] not in uids for pod in pods) == 3
