"""The NetworkPolicy: clients reach the port for clients, members the bus, the operator what it looks at."""

from __future__ import annotations

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.resources.common import child
from disque_operator.spec import Spec


def network_policy(spec: Spec, operator_namespace: str) -> Json | None:
    """The policy; None when it is not wanted."""
    if not spec.network_policy.enabled:
        return None
    selector = {"matchLabels": names.selector(spec.name)}
    served = _ports(names.CLIENT_PORT, names.HTTP_PORT)
    ingress: list[Json] = [
        {"from": [{"podSelector": selector}], "ports": _ports(names.CLIENT_PORT, names.BUS_PORT)},
        {"from": list(spec.network_policy.clients), "ports": served}
        if spec.network_policy.clients
        else {"ports": served},
    ]
    if operator_namespace:
        place = {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": operator_namespace}},
            "podSelector": {"matchLabels": names.OPERATOR_LABELS},
        }
        ingress.append({"from": [place], "ports": served})
    body = {"podSelector": selector, "policyTypes": ["Ingress"], "ingress": ingress}
    return child(spec, "networking.k8s.io/v1", "NetworkPolicy", names.network_policy(spec.name), {"spec": body})


def _ports(*numbers: int) -> list[Json]:
    return [{"protocol": "TCP", "port": number} for number in numbers]
