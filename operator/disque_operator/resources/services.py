"""The two services: one that gives each pod its name, one that clients use."""

from __future__ import annotations

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.resources.common import child
from disque_operator.spec import Spec


def members_service(spec: Spec) -> Json:
    """Headless: a name for each pod, and one for all of them. Members find each other before they are ready."""
    ports = {"client": names.CLIENT_PORT, "bus": names.BUS_PORT, "http": names.HTTP_PORT}
    body = {
        "type": "ClusterIP",
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": names.selector(spec.name),
        "ports": [_port(name, number, name) for name, number in ports.items()],
    }
    return child(spec, "v1", "Service", names.members_service(spec.name), {"spec": body})


def client_service(spec: Spec) -> Json:
    """Leads to the pods that are ready: loaded, not leaving, with room on their disk."""
    body = {
        "type": spec.service.type,
        "selector": names.selector(spec.name),
        "ports": [_port("client", spec.service.port, "client")],
    }
    annotations = dict(spec.service.annotations)
    return child(spec, "v1", "Service", names.client_service(spec.name), {"spec": body}, annotations)


def _port(name: str, number: int, target: str) -> Json:
    return {"name": name, "port": number, "targetPort": target, "protocol": "TCP"}
