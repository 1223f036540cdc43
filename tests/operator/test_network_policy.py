"""The NetworkPolicy, read as Kubernetes does: which pods reach the members, and what members reach."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.resources.network import network_policy
from disque_operator.spec import parse
from support.manifests import sample

CLIENT, BUS, HTTP = names.CLIENT_PORT, names.BUS_PORT, names.HTTP_PORT
OUTSIDE = names.EXTERNAL_PORT
HOME, SYSTEM = "shop", "disque-system"


@dataclass(frozen=True)
class Pod:
    """The other end of a connection."""

    namespace: str
    labels: tuple[tuple[str, str], ...]


def pod(namespace: str, **labels: str) -> Pod:
    return Pod(namespace, tuple(labels.items()))


MEMBER = Pod(HOME, tuple(names.labels("jobs").items()))
OPERATOR = Pod(SYSTEM, tuple(names.OPERATOR_LABELS.items()))
WORKER, OTHER = pod(HOME, role="worker"), pod(HOME, role="other")
PROMETHEUS = pod("monitoring", role="prometheus")
WORKERS: Json = {"podSelector": {"matchLabels": {"role": "worker"}}}
MONITORING: Json = {
    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}},
    "podSelector": {"matchLabels": {"role": "prometheus"}},
}


def policy_of(exposure: Json | None = None, api: str | None = None, **network: object) -> Json:
    spec = {"networkPolicy": network, "exposure": exposure, "httpApi": api}
    body = {"metadata": {"name": "jobs", "namespace": HOME}, "spec": spec}
    policy = network_policy(parse(body), SYSTEM)
    assert policy is not None
    found: Json = policy["spec"]
    return found


def has(labels: Iterable[tuple[str, str]], selector: Json) -> bool:
    return set(selector.get("matchLabels", {}).items()) <= set(labels)


def is_peer(other: Pod, peer: Json) -> bool:
    namespace = peer.get("namespaceSelector")
    there = (
        other.namespace == HOME
        if namespace is None
        else has([("kubernetes.io/metadata.name", other.namespace)], namespace)
    )
    return there and has(other.labels, peer.get("podSelector", {}))


def allowed(rules: list[Json], key: str, other: Pod, port: int, protocol: str = "TCP") -> bool:
    return any(
        (not rule.get(key) or any(is_peer(other, peer) for peer in rule[key]))
        and (not rule.get("ports") or {"protocol": protocol, "port": port} in rule["ports"])
        for rule in rules
    )


def ports_for(other: Pod, spec: Json) -> set[int]:
    """Return the ports of members that a pod may connect to."""
    return {port for port in (CLIENT, BUS, HTTP) if allowed(spec["ingress"], "from", other, port)}


@pytest.mark.parametrize(
    ("network", "worker", "prometheus", "other"),
    [
        ({}, {CLIENT, HTTP}, {CLIENT, HTTP}, {CLIENT, HTTP}),
        ({"clients": [WORKERS]}, {CLIENT, HTTP}, set(), set()),
        ({"clients": [WORKERS], "monitoring": [MONITORING]}, {CLIENT}, {HTTP}, set()),
        ({"monitoring": [MONITORING]}, {CLIENT}, {CLIENT, HTTP}, {CLIENT}),
    ],
    ids=["open", "clients", "clients and monitoring", "monitoring"],
)
def test_policy_admits_clients_and_monitoring_to_their_ports(
    network: Json, worker: set[int], prometheus: set[int], other: set[int]
) -> None:
    spec = policy_of(**network)
    assert ports_for(WORKER, spec) == worker
    assert ports_for(PROMETHEUS, spec) == prometheus
    assert ports_for(OTHER, spec) == other


@pytest.mark.parametrize("network", [{}, {"clients": [WORKERS]}, {"clients": [WORKERS], "monitoring": [MONITORING]}])
def test_only_members_reach_the_bus_port(network: Json) -> None:
    spec = policy_of(**network)
    assert ports_for(MEMBER, spec) >= {CLIENT, BUS}
    assert ports_for(OPERATOR, spec) == {CLIENT, HTTP}
    other_cluster = Pod(HOME, tuple(names.labels("mail").items()))
    assert [other for other in (WORKER, PROMETHEUS, other_cluster) if BUS in ports_for(other, spec)] == []


def test_clients_reach_the_http_port_only_if_it_has_the_api() -> None:
    network: Json = {"enabled": True, "clients": [WORKERS], "monitoring": [MONITORING]}
    assert ports_for(WORKER, policy_of(**network)) == {CLIENT}
    assert ports_for(WORKER, policy_of(api="read", **network)) == {CLIENT, HTTP}
    assert ports_for(OTHER, policy_of(api="read", **network)) == set()


def test_sample_for_production_admits_its_prometheus() -> None:
    """It admitted only clients, so that Prometheus could not read metrics and every member seemed to be down."""
    (body,) = sample("production")
    network = body["spec"]["networkPolicy"]
    (prometheus,) = network["monitoring"]
    scraper = pod("monitoring", **prometheus["podSelector"]["matchLabels"])
    assert ports_for(scraper, policy_of(**network)) == {HTTP}
    assert ports_for(OTHER, policy_of(**network)) == set()


@pytest.mark.parametrize(
    ("network", "worker", "other"),
    [
        ({}, True, True),
        ({"clients": [WORKERS]}, True, True),
        ({"external": [WORKERS]}, True, False),
    ],
    ids=["open", "clients", "external"],
)
def test_policy_admits_clients_outside_only_to_their_port(network: Json, worker: bool, other: bool) -> None:
    found = policy_of(exposure={"type": "NodePort"}, **network)
    for one, expected in ((WORKER, worker), (OTHER, other)):
        assert allowed(found["ingress"], "from", one, OUTSIDE) == expected
    assert CLIENT not in ports_for(OTHER, policy_of(exposure={"type": "NodePort"}, clients=[WORKERS]))
    assert not allowed(policy_of()["ingress"], "from", OTHER, OUTSIDE), "the cluster is not exposed"


def test_outgoing_connections_are_not_limited_by_default() -> None:
    assert policy_of()["policyTypes"] == ["Ingress"]
    assert "egress" not in policy_of()


def test_limited_outgoing_connections_reach_members_dns_and_what_the_spec_adds() -> None:
    elsewhere = {"to": [{"podSelector": {"matchLabels": {"role": "worker"}}}], "ports": [{"port": 17711}]}
    spec = policy_of(egress={"enabled": True, "rules": [elsewhere]})
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    *own, added = spec["egress"]
    assert added == elsewhere
    assert {port for port in (CLIENT, BUS, HTTP) if allowed(own, "to", MEMBER, port)} == {CLIENT, BUS, HTTP}
    assert not any(allowed(own, "to", OTHER, port) for port in (CLIENT, BUS, HTTP, 443))
    dns = pod("kube-system", role="dns")
    assert all(allowed(own, "to", dns, port, protocol) for port in (53, 5353) for protocol in ("UDP", "TCP"))


def test_rules_for_outgoing_connections_need_the_limit() -> None:
    assert "egress" not in policy_of(egress={"rules": [{}]}), "the API server rejects this spec"
