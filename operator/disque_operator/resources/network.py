"""How the cluster is reached: the service of the members, the service for clients, and the NetworkPolicy."""

from __future__ import annotations

from typing import Final

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.resources.common import child
from disque_operator.resources.encryption import client_ports, external_ports
from disque_operator.servicespec import Exposure, ServiceFields
from disque_operator.spec import Spec

_DNS: Final = (53, 5353)
"""Ports of DNS. Policies see the port of the pod behind the service: 53, and 5353 on OpenShift."""


def members_service(spec: Spec) -> Json:
    """Return the headless service that gives each pod its host name.

    It publishes addresses of pods that are not ready: members must find each other before they are ready.
    """
    ports = client_ports(spec) | {"bus": names.BUS_PORT, "http": names.HTTP_PORT}
    body = {
        "type": "ClusterIP",
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": names.selector(spec.name),
        "ports": [_service_port(name, number, name) for name, number in ports.items()],
    }
    return child(spec, "v1", "Service", names.members_service(spec.name), {"spec": body})


def client_service(spec: Spec) -> Json:
    """Return the service for clients. It selects pods that are ready: loaded, not leaving, with free disk space."""
    published = {"client": spec.service.port, names.TLS_PORT_NAME: spec.service.tls_port}
    body = {
        "type": spec.service.type,
        "selector": names.selector(spec.name),
        "ports": [
            *(_service_port(name, published[name], name) for name in client_ports(spec)),
            *([_service_port("http", names.HTTP_PORT, "http")] if spec.http_api else []),
        ],
        **service_options(spec.service),
    }
    annotations = dict(spec.service.annotations)
    return child(spec, "v1", "Service", names.client_service(spec.name), {"spec": body}, annotations)


def external_service(spec: Spec, exposure: Exposure, ordinal: int) -> Json:
    """Return the service by which clients outside of Kubernetes reach a member, while its pod is ready."""
    published = {
        names.EXTERNAL_PORT_NAME: (exposure.port, exposure.node_port),
        names.EXTERNAL_TLS_PORT_NAME: (exposure.tls_port, exposure.tls_node_port),
    }
    ports = []
    for name in external_ports(spec):
        number, first = published[name]
        ports.append(_service_port(name, number, name) | ({"nodePort": first + ordinal} if first else {}))
    body = {
        "type": exposure.type,
        "selector": names.selector(spec.name) | {names.POD_LABEL: names.pod(spec.name, ordinal)},
        "ports": ports,
        **service_options(exposure),
    }
    annotations = {key: exposure.named(text, ordinal, spec.name) for key, text in exposure.annotations.items()}
    return child(spec, "v1", "Service", names.external_service(spec.name, ordinal), {"spec": body}, annotations)


def service_options(given: ServiceFields) -> Json:
    """Return the fields of a service that are set: those of load balancers, and of families of addresses."""
    options = {
        "loadBalancerClass": given.load_balancer_class,
        "loadBalancerSourceRanges": list(given.load_balancer_source_ranges),
        "externalTrafficPolicy": given.external_traffic_policy,
        "ipFamilyPolicy": given.ip_family_policy,
        "ipFamilies": list(given.ip_families),
    }
    return {name: value for name, value in options.items() if value}


def _service_port(name: str, number: int, target: str) -> Json:
    return {"name": name, "port": number, "targetPort": target, "protocol": "TCP"}


def network_policy(spec: Spec, operator_namespace: str) -> Json | None:
    """Return the NetworkPolicy; None if the spec disables it.

    Members reach each other on all ports, clients and monitoring theirs, and the operator those of both. Clients also
    reach the HTTP port if it has the API. Backups need all members.
    """
    network = spec.network_policy
    if not network.enabled:
        return None
    selector = {"matchLabels": names.selector(spec.name)}
    members: Json = {"podSelector": selector}
    served = client_ports(spec).values()
    clients, monitoring = list(network.clients), list(network.monitoring or network.clients)
    if clients:
        clients.append({"podSelector": {"matchLabels": names.runs_selector(spec.name)}})
    ingress = [
        _rule("from", [members], *served, names.BUS_PORT, names.HTTP_PORT),
        _rule("from", clients, *served, *([names.HTTP_PORT] if spec.http_api else [])),
        _rule("from", monitoring, names.HTTP_PORT),
    ]
    if external := external_ports(spec).values():
        ingress.append(_rule("from", list(network.external), *external))
    if operator_namespace:
        operator = {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": operator_namespace}},
            "podSelector": {"matchLabels": names.OPERATOR_LABELS},
        }
        # Both, because pods that are not replaced yet may have the other one
        ingress.append(_rule("from", [operator], names.CLIENT_PORT, names.TLS_PORT, names.HTTP_PORT))
    body: Json = {"podSelector": selector, "policyTypes": ["Ingress"], "ingress": ingress}
    if network.egress.enabled:
        body["policyTypes"].append("Egress")
        body["egress"] = [
            _rule("to", [members], *served, names.BUS_PORT, names.HTTP_PORT),
            {"ports": _ports(*_DNS, protocol="UDP") + _ports(*_DNS)},
            *network.egress.rules,
        ]
    return child(spec, "networking.k8s.io/v1", "NetworkPolicy", names.network_policy(spec.name), {"spec": body})


def _rule(direction: str, peers: list[Json], *ports: int) -> Json:
    """Return a rule for these peers; for all if there are none, as an empty list means in Kubernetes."""
    rule: Json = {"ports": _ports(*ports)}
    return {direction: peers, **rule} if peers else rule


def _ports(*numbers: int, protocol: str = "TCP") -> list[Json]:
    return [{"protocol": protocol, "port": number} for number in numbers]
