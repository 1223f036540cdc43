"""TLS of a running cluster: switched on, renewed, and required, under load and without a lost job."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Final

import pytest

from disque_operator.busmode import read_mode
from e2e.support.brokers import poll
from e2e.support.cluster import DisqueCluster, is_running
from e2e.support.kube import Json, Kube
from e2e.support.load import Load
from e2e.support.plugin import Plugin
from e2e.support.settings import Settings
from e2e.support.times import Times

ROLLOUT_S: Final = 300
RENEWAL_S: Final = 180
"""The kubelet updates mounted Secrets once per minute, and may be a minute late."""
CLOSE_S: Final = 20
"""The certificates of this test are made further apart: two roll-outs are between them."""


def requires_tls(pods: list[Json]) -> bool:
    """Return whether all members require TLS of each other."""
    return len(pods) == 3 and all(read_mode(pod["spec"]["containers"][0]["args"]).tls == "yes" for pod in pods)


def expires_s(cluster: DisqueCluster) -> float:
    """Return when the certificate of the status expires; 0 while there is none."""
    found = cluster.status.get("certificate")
    return datetime.fromisoformat(found["expiresAt"]).timestamp() if found else 0.0


def use_certificate_of_the_status(cluster: DisqueCluster) -> bool:
    """Return whether all brokers use the certificate that the status describes."""
    with cluster.brokers() as brokers:
        left_s = [float(broker.info("server")["tls_certificate_expires_in_seconds"]) for broker in brokers]
    now_s = datetime.now(UTC).timestamp()
    return all(abs(now_s + left - expires_s(cluster)) < CLOSE_S / 2 for left in left_s)


def uids(cluster: DisqueCluster) -> set[str]:
    return {pod["metadata"]["uid"] for pod in cluster.pods()}


@pytest.mark.alone
def test_tls_is_switched_on_renewed_and_required_without_a_lost_job(
    cluster: DisqueCluster, kube: Kube, settings: Settings, times: Times
) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    with Load(kube, cluster, settings.image) as load:
        begin_s = cluster.patch(tls={"enabled": True, "clients": "Optional"})
        cluster.wait_pods(lambda pods: requires_tls(pods) or None, "all members require TLS", ROLLOUT_S)
        cluster.wait_running(3, within_s=ROLLOUT_S)
        times.since("tls_between_members_switched_on_s", begin_s)

        pods, first_s = uids(cluster), expires_s(cluster)
        kube.delete("Secret", "shop-tls", cluster.namespace)
        cluster.wait(lambda _: expires_s(cluster) > first_s + CLOSE_S / 2, "the certificate is made again")
        poll(lambda: use_certificate_of_the_status(cluster), "brokers use the new certificate", RENEWAL_S)
        cluster.wait_formed(3)
        assert uids(cluster) == pods, "no pod restarts"
        account = load.settle()
    account.check(at_least=500)

    cluster.patch(tls={"enabled": True, "clients": "Required"})
    cluster.wait_pods(
        lambda found: (len(found) == 3 and not uids(cluster) & pods) or None, "all are replaced", ROLLOUT_S
    )
    cluster.wait(lambda status: is_running(status, 3), "the operator verifies all members", ROLLOUT_S)
    assert cluster.status["endpoint"] == f"{cluster.service}:7712"
    plugin = Plugin(cluster.namespace)
    assert [row["state"] for row in plugin.json("nodes", "shop")] == ["ok"] * 3
    assert plugin.ok("cli", "shop", "ping") == "PONG\n"
    secret = kube.get("Secret", cluster.client_secret, cluster.namespace)["data"]
    assert base64.b64decode(secret["uri"]).startswith(b"disques://")
    assert b"BEGIN CERTIFICATE" in base64.b64decode(secret["ca.crt"])
