"""How the cluster is reached: the service of the members, the service for clients, and the NetworkPolicy."""

from __future__ import annotations

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.resources.common import child
from disque_operator.spec import Spec


def members_service(spec: Spec) -> Json:
    """Return the headless service that gives each pod its host name.

    It publishes addresses of pods that are not ready: members must find each other before they are ready.
    """
    ports = {"client": names.CLIENT_PORT, "bus": names.BUS_PORT, "http": names.HTTP_PORT}
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
    body = {
        "type": spec.service.type,
        "selector": names.selector(spec.name),
        "ports": [_service_port("client", spec.service.port, "client")],
    }
    annotations = dict(spec.service.annotations)
    return child(spec, "v1", "Service", names.client_service(spec.name), {"spec": body}, annotations)


def _service_port(name: str, number: int, target: str) -> Json:
    return {"name": name, "port": number, "targetPort": target, "protocol": "TCP"}


def network_policy(spec: Spec, operator_namespace: str) -> Json | None:
    """Return the NetworkPolicy; None if the spec disables it.

    Clients reach the client port and the HTTP port, members also the bus port. The operator is a client.
    """
    if not spec.network_policy.enabled:
        return None
    selector = {"matchLabels": names.selector(spec.name)}
    served = _ports(names.CLIENT_PORT, names.HTTP_PORT)
    clients = spec.network_policy.clients
    ingress: list[Json] = [
        {"from": [{"podSelector": selector}], "ports": _ports(names.CLIENT_PORT, names.BUS_PORT)},
        {"from": list(clients), "ports": served} if clients else {"ports": served},
    ]
    if operator_namespace:
        operator = {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": operator_namespace}},
            "podSelector": {"matchLabels": names.OPERATOR_LABELS},
        }
        ingress.append({"from": [operator], "ports": served})
    body = {"podSelector": selector, "policyTypes": ["Ingress"], "ingress": ingress}
    return child(spec, "networking.k8s.io/v1", "NetworkPolicy", names.network_policy(spec.name), {"spec": body})


def _ports(*numbers: int) -> list[Json]:
    return [{"protocol": "TCP", "port": number} for number in numbers]
