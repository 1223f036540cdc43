"""The addresses by which clients outside of Kubernetes reach the members, as far as they are known.

| type | host | ports |
|---|---|---|
| LoadBalancer | what the load balancer has in the status of the service | those of the service |
| NodePort | an address of the Kubernetes node that runs the pod | the node ports of the service |
| ClusterIP | `exposure.host` | those of the service |

`exposure.host` replaces the host of the other types too. Each member announces its address (`settings`), the status
lists all of them (`status`), and certificates contain them (`certificates`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.members import ClusterView
from disque_operator.observed import Pod
from disque_operator.pki import ip_of
from disque_operator.resources import is_ours
from disque_operator.resources.encryption import external_ports
from disque_operator.servicespec import Exposure
from disque_operator.versions import knows


@dataclass(frozen=True)
class ExternalAddress:
    """Where clients outside of Kubernetes reach a member."""

    host: str
    port: int = 0
    """Without TLS; 0 for none."""
    tls_port: int = 0
    """With TLS; 0 for none."""

    def directive(self) -> str:
        """Return the value of `cluster-announce-external`, which always has a first port."""
        first = _joined(self.host, self.port or self.tls_port)
        return f"{first}@{self.tls_port}" if self.tls_port else first

    def for_clients(self) -> str:
        """Return `host:port`, with the port for TLS if there is one."""
        return _joined(self.host, self.tls_port or self.port)


@dataclass(frozen=True)
class Hosts:
    """Hosts in certificates."""

    names: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    """IP addresses."""


@dataclass(frozen=True)
class Missing:
    """Why a member has no address yet, as the reason of a condition and for people."""

    reason: str
    message: str


def external_address(view: ClusterView, pod: Pod) -> ExternalAddress | Missing | None:
    """Return the address of a member, or why it has none; None without `spec.exposure`, and before its pod runs."""
    exposure = view.spec.exposure
    if exposure is None or not pod.node:
        return None
    name = names.external_service(view.spec.name, pod.ordinal)
    live = view.observed.children.get(("Service", name))
    if live is None or "deletionTimestamp" in live["metadata"] or live["spec"].get("type") != exposure.type:
        return Missing("ServicePending", f"the Service {name} is not made yet")
    if not is_ours(live, view.spec):  # it may lead to other programs, which would get passwords
        return Missing("ServicePending", f"the Service {name} does not belong to this cluster")
    open_ports = pod.external & external_ports(view.spec).keys()
    if not open_ports:
        return _without_ports(pod)
    ports = _ports(live, "nodePort" if exposure.type == "NodePort" else "port")
    host = _host(view, exposure, pod, live)
    if isinstance(host, Missing):
        return host
    plain, tls = (
        ports.get(port, 0) if port in open_ports else 0
        for port in (names.EXTERNAL_PORT_NAME, names.EXTERNAL_TLS_PORT_NAME)
    )
    if not plain and not tls:
        return Missing("ServicePending", f"the Service {name} has no port yet")
    return ExternalAddress(host, plain, tls)


def missing(view: ClusterView) -> tuple[Missing, ...]:
    """Return why members have no address.

    A pod without a Kubernetes node does not count: other conditions report it, and each rollout has some.
    """
    found = (external_address(view, member.pod) for member in view.members if member.pod.ordinal < view.expected)
    return tuple(one for one in found if isinstance(one, Missing))


def announced(view: ClusterView, pod: Pod) -> str:
    """Return what a member announces; empty if it has no address."""
    found = external_address(view, pod)
    return found.directive() if isinstance(found, ExternalAddress) else ""


def known(view: ClusterView) -> Iterator[tuple[Pod, ExternalAddress]]:
    """Yield the pods that have an address, by their numbers."""
    for member in view.members:
        found = external_address(view, member.pod)
        if isinstance(found, ExternalAddress):
            yield member.pod, found


def verified_hosts(view: ClusterView) -> Hosts:
    """Return the hosts by which clients outside of Kubernetes verify members; none without a port for TLS outside.

    Names by `exposure.host` do not depend on what members have: they are in the certificate before a member starts.
    """
    exposure = view.spec.exposure
    if exposure is None or names.EXTERNAL_TLS_PORT_NAME not in external_ports(view.spec):
        return Hosts()
    if exposure.host is not None:
        ordinals = sorted({*range(view.spec.replicas), *view.by_ordinal})
        return Hosts(tuple(exposure.named(exposure.host, ordinal, view.spec.name) for ordinal in ordinals))
    hosts = [address.host for _, address in known(view)]
    return Hosts(tuple(host for host in hosts if ip_of(host) is None), tuple(filter(ip_of, hosts)))


def _without_ports(pod: Pod) -> Missing:
    if knows(pod.image, "external-port"):
        return Missing("PortsPending", f"{pod.name} opens its ports for clients outside when it is replaced")
    return Missing(
        "VersionTooOld",
        f"the image {pod.image} of {pod.name} has no ports for clients outside: use an image of 0.2 or newer, by a tag",
    )


def _host(view: ClusterView, exposure: Exposure, pod: Pod, live: Json) -> str | Missing:
    own = exposure.named(exposure.host, pod.ordinal, view.spec.name) if exposure.host is not None else ""
    if exposure.type == "ClusterIP":
        return own
    if exposure.type == "LoadBalancer":
        return _of_load_balancer(exposure, live, own)
    return own or _of_node(view, exposure, pod)


def _of_load_balancer(exposure: Exposure, live: Json, own: str) -> str | Missing:
    ingress = ((live.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    given = [str(host) for entry in ingress if (host := entry.get("ip") or entry.get("hostname"))]
    name = live["metadata"]["name"]
    if not given:
        return Missing("LoadBalancerPending", f"the Service {name} has no load balancer yet: see its events")
    return own or _of_family(given, exposure)


def _of_node(view: ClusterView, exposure: Exposure, pod: Pod) -> str | Missing:
    if not view.observed.sees_nodes:
        return Missing(
            "NodesForbidden",
            "the operator is not permitted to read Kubernetes nodes, whose addresses clients need: permit it to get "
            "nodes, or set exposure.host",
        )
    found = _preferred(pod.node_addresses, exposure)
    if not found:
        types = ", ".join(exposure.address_types)
        return Missing("NodeAddressMissing", f"the Kubernetes node of {pod.name} has no address of the types {types}")
    return found


def _preferred(addresses: Sequence[tuple[str, str]], exposure: Exposure) -> str:
    """Return the address of the preferred type; empty if there is none of any type."""
    by_type = ([address for found, address in addresses if found == kind] for kind in exposure.address_types)
    return next((_of_family(of_type, exposure) for of_type in by_type if of_type), "")


def _of_family(hosts: Sequence[str], exposure: Exposure) -> str:
    """Return the first host of the preferred family, or the first one if there is none."""
    preferred = exposure.ip_families[:1]
    return next((host for host in hosts if (ip := ip_of(host)) and f"IPv{ip.version}" in preferred), hosts[0])


def _ports(live: Json, number: str) -> dict[str, int]:
    """Return the ports of a service by name; without a node port that is not allocated yet."""
    return {port["name"]: port[number] for port in live["spec"].get("ports") or () if port.get(number)}


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
