"""Clients outside of Kubernetes: each member has an address of its own, also if the cluster is exposed under load."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Final

import pytest

from disqued.client import Client, tls_context
from disqued.client.errors import DisqueError
from e2e.support.brokers import Broker, poll
from e2e.support.cluster import SMALL, DisqueCluster, is_running
from e2e.support.kube import Json, Kube
from e2e.support.load import Load
from e2e.support.settings import Settings

ROLLOUT_S: Final = 300
ANNOUNCED_S: Final = 60
CONNECT_S: Final = 5.0
RENEWAL_S: Final = 180
"""The kubelet updates mounted Secrets once per minute, and may be a minute late."""
EXTERNAL_PORT: Final = 7713
NAMED: Final[Json] = {"type": "ClusterIP", "host": "{pod}.jobs.example.com"}


def addresses(cluster: DisqueCluster) -> list[str]:
    return [entry["address"] for entry in cluster.status["exposure"]["addresses"]]


def outside(kube: Kube, cluster: DisqueCluster, ordinal: int) -> set[str]:
    """Return the members as clients of the external port of a member see them, whatever reaches that port."""
    with Broker(kube, cluster.namespace, cluster.pod(ordinal), cluster.password, port=EXTERNAL_PORT) as broker:
        return broker.members()


def inside(cluster: DisqueCluster, ordinal: int) -> set[str]:
    with cluster.broker(ordinal) as broker:
        return broker.members()


def pod_hosts(cluster: DisqueCluster, members: int) -> set[str]:
    suffix = f"{cluster.name}-members.{cluster.namespace}.svc:7711"
    return {f"{cluster.pod(ordinal)}.{suffix}" for ordinal in range(members)}


def wait_announced(kube: Kube, cluster: DisqueCluster, members: int) -> set[str]:
    """Wait until the external port of each member shows the addresses of the status, and return those."""

    def are_announced() -> bool:
        found = set(addresses(cluster))
        return len(found) == members and all(outside(kube, cluster, one) == found for one in range(members))

    poll(are_announced, "every member knows the external addresses of all", ANNOUNCED_S)
    return set(addresses(cluster))


def services(kube: Kube, cluster: DisqueCluster) -> set[str]:
    found = kube.all("Service", cluster.namespace, f"disque.dev/cluster={cluster.name}")
    return {service["metadata"]["name"] for service in found}


def uids(cluster: DisqueCluster) -> set[str]:
    return {pod["metadata"]["uid"] for pod in cluster.pods()}


def is_reachable(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
    except OSError:
        return False
    return True


def reachable(found: set[str]) -> list[str]:
    """Return for each member an address at which this machine reaches it; skip the test if it reaches none.

    Each Kubernetes node forwards the node ports of all members, and some networks reach only some of the nodes.
    """
    hosts = [address.rpartition(":")[0] for address in sorted(found)]
    ways = ([f"{host}:{address.rpartition(':')[2]}" for host in hosts] for address in sorted(found))
    chosen = [next(filter(is_reachable, several), None) for several in ways]
    if not any(chosen):
        pytest.skip(f"node ports cannot be reached from this machine: no connection to {', '.join(sorted(found))}")
    assert None not in chosen, dict(zip(sorted(found), chosen, strict=True))
    return [way for way in chosen if way is not None]


def test_cluster_is_exposed_under_load_and_each_member_serves_clients_outside(
    cluster: DisqueCluster, kube: Kube, settings: Settings
) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    before = uids(cluster)
    with Load(kube, cluster, settings.image) as load:
        cluster.patch(exposure={"type": "NodePort"})
        cluster.wait_condition("Exposed", "True", ROLLOUT_S)
        cluster.wait_running(3, within_s=ROLLOUT_S)
        account = load.settle()
    account.check(at_least=500)
    assert not before & uids(cluster), "all pods were replaced, to open the port"

    found = wait_announced(kube, cluster, 3)
    assert [inside(cluster, ordinal) for ordinal in range(3)] == [pod_hosts(cluster, 3)] * 3

    ways = reachable(found)
    for number, way in enumerate(ways):
        with Client([way], password=cluster.password, discover=False) as client:
            assert {f"{node.host}:{node.port}" for node in client.hello().nodes} == found
            job_id = client.add(f"outside-{number}", "body", replicate=2, retry_s=30)
            [job] = client.get(f"outside-{number}", timeout_ms=5000)
            assert job.id == job_id
            assert client.ack(job.id) == 1

    kube.delete("Pod", cluster.pod(0), cluster.namespace)
    cluster.wait_running(3)
    with Client(ways, password=cluster.password) as client:
        poll(lambda: _adds(client), "a client outside continues after a member restarted", ANNOUNCED_S)
    wait_announced(kube, cluster, 3)


def _adds(client: Client) -> bool:
    try:
        return bool(client.add("outside", "body", replicate=2))
    except DisqueError:
        return False


def test_clients_outside_verify_members_by_the_addresses_of_their_nodes(
    cluster: DisqueCluster, kube: Kube, tmp_path: Path
) -> None:
    cluster.create(replicas=2, resources=SMALL, tls={"enabled": True}, exposure={"type": "NodePort"})
    cluster.wait(lambda status: is_running(status, 2), "the operator verifies all members")
    cluster.wait_condition("Exposed", "True")
    found = set(addresses(cluster))
    assert len(found) == 2
    ways = reachable(found)
    authority = tmp_path / "ca.crt"
    authority.write_text(kube.get("ConfigMap", "shop-ca", cluster.namespace)["data"]["ca.crt"])

    def members(way: str) -> set[str]:
        settings = tls_context(cafile=str(authority))
        with Client([way], password=cluster.password, tls=settings, discover=False) as client:
            return {f"{node.host}:{node.port}" for node in client.hello().nodes}

    def are_verified() -> bool:
        try:
            return all(members(way) == found for way in ways)
        except DisqueError:
            return False

    poll(are_verified, "every member has a certificate with its address", RENEWAL_S)


def test_names_and_types_change_without_a_restart_and_services_go_with_their_members(
    cluster: DisqueCluster, kube: Kube
) -> None:
    cluster.create(replicas=2, resources=SMALL, exposure=NAMED)
    cluster.wait_running(2)
    cluster.wait_condition("Exposed", "True")
    names = {f"{cluster.pod(ordinal)}.jobs.example.com:7711" for ordinal in range(2)}
    assert wait_announced(kube, cluster, 2) == names
    assert inside(cluster, 0) == pod_hosts(cluster, 2)
    own = {cluster.name, f"{cluster.name}-members"}
    assert services(kube, cluster) - own == {f"{cluster.pod(ordinal)}-external" for ordinal in range(2)}

    before = uids(cluster)
    cluster.patch(exposure={"type": "NodePort", "host": None})
    cluster.wait_condition("Exposed", "True")
    cluster.wait(lambda _: not names & set(addresses(cluster)), "the addresses are those of Kubernetes nodes")
    wait_announced(kube, cluster, 2)
    assert uids(cluster) == before, "no pod restarts"

    cluster.patch(replicas=1)
    cluster.wait_running(1)
    poll(lambda: services(kube, cluster) == own | {f"{cluster.pod(0)}-external"}, "one service is left", ANNOUNCED_S)
    cluster.patch(exposure=None)
    poll(lambda: services(kube, cluster) == own, "no member has a service of its own", ANNOUNCED_S)
    cluster.wait_running(1, within_s=ROLLOUT_S)
    assert "exposure" not in cluster.status


def test_load_balancer_that_nobody_provides_is_reported_and_the_cluster_is_ready(
    cluster: DisqueCluster, kube: Kube
) -> None:
    """The class is nobody's, so this is so in each Kubernetes."""
    cluster.create(
        replicas=1, resources=SMALL, exposure={"type": "LoadBalancer", "loadBalancerClass": "disque.dev/nobody"}
    )
    cluster.wait_running(1)
    found = cluster.wait_condition("Exposed", "False", reason="LoadBalancerPending")
    assert "shop-0-external" in found["message"]
    status = {"loadBalancer": {"ingress": [{"ip": "198.51.100.7"}]}}
    kube.patch("Service", "shop-0-external", cluster.namespace, {"status": status}, part="status")
    cluster.wait_condition("Exposed", "True")
    assert addresses(cluster) == ["198.51.100.7:7711"]
    assert wait_announced(kube, cluster, 1) == {"198.51.100.7:7711"}
