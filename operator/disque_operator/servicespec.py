"""The services in the spec: the one for clients, and those by which clients outside of Kubernetes reach each member."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import ConfigDict, Field, JsonValue

from disque_operator import names
from disque_operator.sections import LONGEST_NAME, MOST_MEMBERS, Name, Section, rule, rules

Port: TypeAlias = Annotated[int, Field(ge=1, le=65535)]
AddressBlock: TypeAlias = Annotated[str, Field(max_length=43, pattern="^[0-9a-fA-F.:]+/[0-9]{1,3}$")]
NodeAddressType: TypeAlias = Literal["ExternalIP", "InternalIP", "Hostname", "ExternalDNS", "InternalDNS"]
_LABEL: Final = r"([a-z0-9]|\{pod\}|\{ordinal\})([-a-z0-9]|\{pod\}|\{ordinal\})*"
_HOST_PATTERN: Final = rf"^{_LABEL}(\.{_LABEL})*$"
"""A host name in which `{pod}` and `{ordinal}` stand for those of a member."""


class ServiceFields(Section):
    """What a service of any type may have."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = Field(description="Type of the service.")
    annotations: Annotated[dict[str, Annotated[str, Field(max_length=4096)]], Field(max_length=32)] = Field(
        default={}, description="Annotations of the service, for example for a load balancer."
    )
    load_balancer_class: Name | None = Field(
        default=None,
        description="The implementation of load balancers. Defaults to that of Kubernetes. It cannot be changed while "
        "the type is LoadBalancer.",
    )
    load_balancer_source_ranges: Annotated[tuple[AddressBlock, ...], Field(max_length=64)] = Field(
        default=(),
        description="Addresses of clients that the load balancer admits, for example `203.0.113.0/24`. Empty: all.",
    )
    external_traffic_policy: Literal["Cluster", "Local"] | None = Field(
        default=None,
        description="Whether each Kubernetes node forwards connections (Cluster), or only the one that runs the pod, "
        "which keeps the addresses of clients (Local).",
    )
    ip_family_policy: Literal["SingleStack", "PreferDualStack", "RequireDualStack"] | None = Field(
        default=None, description="Whether the service has addresses of IPv4 and of IPv6."
    )
    ip_families: Annotated[tuple[Literal["IPv4", "IPv6"], ...], Field(max_length=2)] = Field(
        default=(), description="Families of its addresses, the preferred one first, which cannot be changed later."
    )


def _service_rules(path: str) -> tuple[dict[str, JsonValue], ...]:
    """Return the rules for a service; `path` is that of its section."""
    return (
        rule(
            "self.type == 'LoadBalancer' || (!has(self.loadBalancerClass) && "
            "(!has(self.loadBalancerSourceRanges) || size(self.loadBalancerSourceRanges) == 0))",
            f"{path}.loadBalancerClass and {path}.loadBalancerSourceRanges need {path}.type: LoadBalancer",
        ),
        rule(
            "self.type != 'ClusterIP' || !has(self.externalTrafficPolicy)",
            f"{path}.externalTrafficPolicy needs {path}.type: LoadBalancer or NodePort",
        ),
        rule(
            "self.type != 'LoadBalancer' || oldSelf.type != 'LoadBalancer' || "
            "(has(self.loadBalancerClass) == has(oldSelf.loadBalancerClass) && "
            "(!has(self.loadBalancerClass) || self.loadBalancerClass == oldSelf.loadBalancerClass))",
            f"{path}.loadBalancerClass cannot be changed while {path}.type is LoadBalancer: set another type first",
        ),
        rule(
            "!has(self.ipFamilies) || size(self.ipFamilies) < 2 || (self.ipFamilies[0] != self.ipFamilies[1] && "
            "has(self.ipFamilyPolicy) && self.ipFamilyPolicy != 'SingleStack')",
            f"two different {path}.ipFamilies need {path}.ipFamilyPolicy: PreferDualStack or RequireDualStack",
        ),
    )


_NODE_PORTS: Final = ("nodePort", "tlsNodePort")


def _apart(one: str, other: str, *, same: bool = False) -> str:
    """Return the condition that the ports of members beginning with `one` and `other` do not overlap; or are the same.

    Both are fields with their objects.
    """
    far = f"{one} >= {other} + {MOST_MEMBERS} || {other} >= {one} + {MOST_MEMBERS}"
    return f"!has({one}) || !has({other}) || {far}" + (f" || {one} == {other}" if same else "")


class ClientService(ServiceFields):
    """The service that clients use: `<name>.<namespace>.svc`."""

    model_config = ConfigDict(json_schema_extra=rules(*_service_rules("service")))

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = Field(
        default="ClusterIP", description="Type of the service."
    )
    port: Port = Field(default=names.CLIENT_PORT, description="Port of the service for clients without TLS.")
    tls_port: Port = Field(default=names.TLS_PORT, description="Port of the service for clients with TLS.")


class Exposure(ServiceFields):
    """Services by which clients outside of Kubernetes reach each member: `<pod>-external`.

    Brokers give clients that come through them the external addresses of all members.
    """

    model_config = ConfigDict(
        json_schema_extra=rules(
            *_service_rules("exposure"),
            rule(
                "self.type != 'ClusterIP' || has(self.host)",
                "exposure.type: ClusterIP needs exposure.host, the name by which a Gateway or an Ingress finds each "
                "member, for example {pod}.jobs.example.com",
            ),
            rule(
                "self.type == 'NodePort' || !has(self.host) || self.host.contains('{pod}') || "
                "self.host.contains('{ordinal}')",
                "exposure.host must contain {pod} or {ordinal}, because each member needs a name of its own",
            ),
            rule(
                "self.type == 'NodePort' || (!has(self.nodePort) && !has(self.tlsNodePort))",
                "exposure.nodePort and exposure.tlsNodePort need exposure.type: NodePort",
            ),
            rule(
                _apart("self.nodePort", "self.tlsNodePort"),
                f"exposure.nodePort and exposure.tlsNodePort must be at least {MOST_MEMBERS} apart, because each "
                "member has a port of each",
            ),
            *(
                rule(
                    _apart(f"self.{name}", f"oldSelf.{former}", same=name == former),
                    f"exposure.{name} must be at least {MOST_MEMBERS} from the present exposure.{former}, because no "
                    "member can have a port while another one has it",
                )
                for name in _NODE_PORTS
                for former in _NODE_PORTS
            ),
            rule("self.port != self.tlsPort", "exposure.port and exposure.tlsPort must be different"),
        )
    )

    type: Literal["LoadBalancer", "NodePort", "ClusterIP"] = Field(
        description="Type of the services. LoadBalancer: each member has a load balancer. NodePort: a port of the "
        "Kubernetes nodes. ClusterIP: a name at your Gateway or Ingress, which passes TLS through."
    )
    annotations: Annotated[dict[str, Annotated[str, Field(max_length=4096)]], Field(max_length=32)] = Field(
        default={},
        description="Annotations of the services, for example a name for ExternalDNS. `{pod}` and `{ordinal}` in their "
        "values are replaced as in `host`.",
    )
    host: Annotated[str, Field(max_length=LONGEST_NAME, pattern=_HOST_PATTERN)] | None = Field(
        default=None,
        description="Host name of each member for clients outside, for example `{pod}.jobs.example.com`: `{pod}` is "
        "replaced by the name of the pod, `{ordinal}` by its number. You provide the names in DNS. By default, clients "
        "use the address of the load balancer or of the Kubernetes node.",
    )
    port: Port = Field(
        default=names.CLIENT_PORT,
        description="Port for clients without TLS: of the load balancer, or of your gateway. Of no effect with "
        "NodePort.",
    )
    tls_port: Port = Field(default=names.TLS_PORT, description="The same for clients with TLS.")
    node_port: Port | None = Field(
        default=None,
        description="Node port of the first member without TLS; the next member has the next port. By default, "
        "Kubernetes chooses the ports.",
    )
    tls_node_port: Port | None = Field(default=None, description="The same with TLS.")
    address_types: Annotated[tuple[NodeAddressType, ...], Field(min_length=1, max_length=5)] = Field(
        default=("ExternalIP", "InternalIP"),
        description="Which addresses of Kubernetes nodes clients use with NodePort, the preferred type first. Defaults "
        "to ExternalIP, then InternalIP.",
    )

    def named(self, text: str, ordinal: int, cluster: str) -> str:
        """Return a text with the name and the number of a pod in place of `{pod}` and `{ordinal}`."""
        return text.replace("{pod}", names.pod(cluster, ordinal)).replace("{ordinal}", str(ordinal))
