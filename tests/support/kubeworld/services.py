"""A model of services: the API server allocates node ports, and a controller provides load balancers after a while."""

from __future__ import annotations

from typing import Final

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.observed import Pod
from disque_operator.spec import Spec
from support.kubeworld.objects import Api

FIRST_NODE_PORT: Final = 30000
LOAD_BALANCER_S: Final = 30.0
NODE_ADDRESSES: Final = {
    f"m{number}": (("InternalIP", f"192.0.2.{number}"), ("Hostname", f"m{number}.example.com")) for number in range(3)
}
"""The addresses of the Kubernetes nodes."""


class ServiceController:
    """Completes services as Kubernetes does."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._since_s: dict[str, float] = {}
        """When each service got the type LoadBalancer, by UID."""
        self._used: set[int] = set()
        self.has_load_balancers = True

    def step(self, now_s: float) -> bool:
        """Allocate ports and load balancers; return whether a service changed."""
        found = [item for (kind, _), item in self._api.objects.items() if kind == "Service"]
        changed = [live for live in found if self._allocate_ports(live) | self._balance(live, now_s)]
        for live in changed:
            self._api.touch(live)
        return bool(changed)

    def _allocate_ports(self, live: Json) -> bool:
        if live["spec"]["type"] == "ClusterIP":
            return False
        missing = [port for port in live["spec"]["ports"] if "nodePort" not in port]
        for port in missing:
            port["nodePort"] = next(number for number in range(FIRST_NODE_PORT, 32768) if number not in self._used)
            self._used.add(port["nodePort"])
        return bool(missing)

    def _balance(self, live: Json, now_s: float) -> bool:
        uid = live["metadata"]["uid"]
        if live["spec"]["type"] != "LoadBalancer":
            self._since_s.pop(uid, None)
            return live.pop("status", None) is not None
        since_s = self._since_s.setdefault(uid, now_s)
        if not self.has_load_balancers or now_s < since_s + LOAD_BALANCER_S or live.get("status"):
            return False
        live["status"] = {"loadBalancer": {"ingress": [{"ip": f"198.51.100.{self._api.serial() % 250}"}]}}
        return True


def external_directive(api: Api, spec: Spec, pod: Pod) -> str | None:
    """Return what a member must announce by its service; None if that is not known yet."""
    if spec.exposure is None:
        return ""
    live = api.get("Service", names.external_service(spec.name, pod.ordinal))
    if live is None or live["spec"]["type"] != spec.exposure.type or not pod.external:
        return None
    host = (spec.exposure.host or "").replace("{pod}", pod.name).replace("{ordinal}", str(pod.ordinal))
    if spec.exposure.type == "LoadBalancer":
        if not live.get("status"):
            return None
        (entry,) = live["status"]["loadBalancer"]["ingress"]
        host = host or entry.get("ip") or entry["hostname"]
    if spec.exposure.type == "NodePort":
        of_types = [dict(pod.node_addresses).get(kind, "") for kind in spec.exposure.address_types]
        host = host or next(filter(None, of_types), "")
        if not host:
            return ""
    number = "nodePort" if spec.exposure.type == "NodePort" else "port"
    ports = {port["name"]: port.get(number) for port in live["spec"]["ports"] if port["name"] in pod.external}
    if not ports or None in ports.values():
        return None
    first = next(iter(ports.values()))
    return f"{host}:{first}" + (f"@{ports['external-tls']}" if "external-tls" in ports else "")
