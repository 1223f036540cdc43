"""What only live state can show is told of with a reason and what to do, and comes right by itself afterwards."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from e2e.support.cluster import DisqueCluster
from e2e.support.kube import Kube

SEEN_S = 120

CASES: dict[str, tuple[dict[str, Any], str, str, dict[str, Any]]] = {
    "image": ({"image": "localhost/there-is-no-such-image:1"}, "ImageMissing", "spec.image", {}),
    "no machine": ({"nodeSelector": {"no": "machine"}}, "Unschedulable", "spec.nodeSelector", {"nodeSelector": None}),
    "consent": ({"drain": {"onTimeout": "Force"}}, "", "disque.dev/allow-job-loss", {"drain": None}),
    "directive": (
        {"config": {"client-output-buffer-limit": "normal 1gb"}},
        "",
        "spec.config.client-output-buffer-limit",
        {"config": None},
    ),
}
"""What is asked for; the reason of Degraded, or none where SpecValid says it; a word of the message; what mends it."""


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_said_and_mended_by_a_change(cluster: DisqueCluster, case: str) -> None:
    spec, reason, word, mended = CASES[case]
    right = cluster.manifest()["spec"]
    cluster.create(replicas=1, **spec)
    kind, value = ("Degraded", "True") if reason else ("SpecValid", "False")
    told = cluster.wait_condition(kind, value, within_s=SEEN_S, reason=reason)
    assert word in told["message"], told
    cluster.patch(**(mended or {"image": right["image"]}))
    cluster.wait_running(1)


def test_a_missing_secret_is_told_of_until_it_is_there(cluster: DisqueCluster, kube: Kube) -> None:
    cluster.create(replicas=1, auth={"secretName": "mine"})
    told = cluster.wait_condition("Degraded", "True", within_s=SEEN_S, reason="SecretMissing")
    assert "kubectl create secret" in told["message"]
    secret = {"metadata": {"name": "mine", "namespace": cluster.namespace}}
    data = {"password": base64.b64encode(b"of my own").decode()}
    kube.create({"apiVersion": "v1", "kind": "Secret", **secret, "data": data})
    cluster.wait_running(1)
    assert cluster.password == "of my own"


def test_a_quota_that_is_exceeded_is_told_of(cluster: DisqueCluster, kube: Kube) -> None:
    metadata = {"name": "few", "namespace": cluster.namespace}
    kube.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {"pods": "1"}}})
    cluster.create(replicas=2)
    told = cluster.wait_condition("Degraded", "True", within_s=SEEN_S, reason="PodsRefused")
    assert "quota" in told["message"]
    kube.delete("ResourceQuota", "few", cluster.namespace)
    cluster.wait_running(2, within_s=300)
