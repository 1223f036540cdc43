"""The NetworkPolicy admits only the listed pods, where Kubernetes enforces network policies."""

from __future__ import annotations

import pytest

from disque_operator import names
from e2e.support.brokers import poll
from e2e.support.cluster import DisqueCluster
from e2e.support.kube import Kube, WaitFailedError
from e2e.support.netpods import LISTEN_PORT, Caller, peer, reaches, refusal
from e2e.support.settings import Settings

ENFORCED_S = 20
"""How long the network may take to apply a policy."""


def test_network_policy_denies_unknown_pods(
    cluster: DisqueCluster, kube: Kube, namespace: str, settings: Settings
) -> None:
    worker, prometheus, other = (
        Caller(kube, namespace, role, settings.image) for role in ("worker", "prometheus", "other")
    )
    poll(lambda: other.reaches(worker.address, LISTEN_PORT), "pods reach each other", ENFORCED_S)
    kube.create(refusal(namespace, "worker"))
    try:
        poll(lambda: not other.reaches(worker.address, LISTEN_PORT), "the policy is enforced", ENFORCED_S)
    except WaitFailedError:
        pytest.skip("this Kubernetes does not enforce network policies (kind does)")

    cluster.create(replicas=2, networkPolicy={"clients": [peer("worker")], "monitoring": [peer("prometheus")]})
    cluster.wait_running(2)  # so members reach each other, and the operator reaches them
    addresses = [pod["status"]["podIP"] for pod in cluster.pods()]
    ports = (names.CLIENT_PORT, names.BUS_PORT, names.HTTP_PORT)
    wanted: dict[Caller, set[int]] = {worker: {names.CLIENT_PORT}, prometheus: {names.HTTP_PORT}, other: set()}

    def as_wanted() -> bool:
        return all(
            caller.reaches(address, port) == (port in open_ports)
            for caller, open_ports in wanted.items()
            for address in addresses
            for port in ports
        )

    poll(as_wanted, "only workers reach the client port, only Prometheus the HTTP port, nobody the bus", ENFORCED_S)

    def member_reaches(address: str, port: int) -> bool:
        return reaches(kube, namespace, cluster.pod(0), address, port)

    assert member_reaches(other.address, LISTEN_PORT), "outgoing connections are not limited by default"
    cluster.patch(networkPolicy={"egress": {"enabled": True}})
    poll(lambda: not member_reaches(other.address, LISTEN_PORT), "members cannot call other pods", ENFORCED_S)
    assert member_reaches(addresses[1], names.BUS_PORT)
