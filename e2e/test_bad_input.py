"""Specs that the API server accepts but that cannot work: a condition gives the reason and the remedy, and clears."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from e2e.support.cluster import DisqueCluster
from e2e.support.kube import Kube

SEEN_S = 120

CASES: dict[str, tuple[dict[str, Any], str, str, dict[str, Any]]] = {
    "image": ({"image": "localhost/there-is-no-such-image:1"}, "ImageMissing", "spec.image", {}),
    "no node": ({"nodeSelector": {"no": "node"}}, "Unschedulable", "spec.nodeSelector", {"nodeSelector": None}),
    "consent": ({"drain": {"onTimeout": "Force"}}, "", "disque.dev/allow-job-loss", {"drain": None}),
    "directive": (
        {"config": {"client-output-buffer-limit": "normal 1gb"}},
        "",
        "spec.config.client-output-buffer-limit",
        {"config": None},
    ),
}
"""The spec, the reason of Degraded (empty if SpecValid reports the problem), part of the message, and the fix."""


@pytest.mark.parametrize("case", CASES)
def test_condition_names_the_wrong_field_and_clears_after_a_fix(cluster: DisqueCluster, case: str) -> None:
    spec, reason, word, fix = CASES[case]
    default = cluster.manifest()["spec"]
    cluster.create(replicas=1, **spec)
    kind, value = ("Degraded", "True") if reason else ("SpecValid", "False")
    found = cluster.wait_condition(kind, value, within_s=SEEN_S, reason=reason)
    assert word in found["message"], found
    cluster.patch(**(fix or {"image": default["image"]}))
    cluster.wait_running(1)


def test_missing_secret_degrades_the_cluster_until_it_exists(cluster: DisqueCluster, kube: Kube) -> None:
    cluster.create(replicas=1, auth={"secretName": "mine"})
    found = cluster.wait_condition("Degraded", "True", within_s=SEEN_S, reason="SecretMissing")
    assert "kubectl create secret" in found["message"]
    secret = {"metadata": {"name": "mine", "namespace": cluster.namespace}}
    data = {"password": base64.b64encode(b"own password").decode()}
    kube.create({"apiVersion": "v1", "kind": "Secret", **secret, "data": data})
    cluster.wait_running(1)
    assert cluster.password == "own password"


def test_exceeded_quota_degrades_the_cluster(cluster: DisqueCluster, kube: Kube) -> None:
    metadata = {"name": "few", "namespace": cluster.namespace}
    kube.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {"pods": "1"}}})
    cluster.create(replicas=2)
    found = cluster.wait_condition("Degraded", "True", within_s=SEEN_S, reason="PodsRefused")
    assert "quota" in found["message"]
    kube.delete("ResourceQuota", "few", cluster.namespace)
    cluster.wait_running(2, within_s=300)
