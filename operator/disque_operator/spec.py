"""The `spec` of a `DisqueCluster`: one model, from which its schema, its reference page and its parser are made.

Each field has its type, default, bounds and description here. `disque_operator.schema` turns the model into the
CustomResourceDefinition, and `parse` reads objects with it. Rules that the model cannot express stand beside the fields
in Kubernetes' expression language, and only the API server evaluates them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

from pydantic import ConfigDict, Field, ValidationError, WithJsonSchema

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.backupspec import Backup, Bootstrap
from disque_operator.orderedspec import OrderedQueues
from disque_operator.sections import EMBEDDED, MOST_MEMBERS, Name, Resources, Section, field_name, rule, rules
from disque_operator.servicespec import ClientService, Exposure

_DAY_S: Final = 86400
_WEEK_S: Final = 7 * _DAY_S

Affinity: TypeAlias = Annotated[Json, WithJsonSchema({EMBEDDED: "V1Affinity"})]
Toleration: TypeAlias = Annotated[Json, WithJsonSchema({EMBEDDED: "V1Toleration", "description": "A toleration."})]
TopologySpreadConstraint: TypeAlias = Annotated[
    Json, WithJsonSchema({EMBEDDED: "V1TopologySpreadConstraint", "description": "A constraint."})
]
NetworkPolicyPeer: TypeAlias = Annotated[
    Json,
    WithJsonSchema({EMBEDDED: "V1NetworkPolicyPeer", "description": "Pods, namespaces or address blocks."}),
]
NetworkPolicyEgressRule: TypeAlias = Annotated[
    Json,
    WithJsonSchema({EMBEDDED: "V1NetworkPolicyEgressRule", "description": "Destinations and their ports."}),
]
OnTimeout: TypeAlias = Literal["Wait", "Retain", "Force"]
Retention: TypeAlias = Literal["Retain", "Delete"]
TlsUse: TypeAlias = Literal["Required", "Optional", "Disabled"]


class SecretReference(Section):
    """A Secret in the same namespace."""

    name: Name = Field(description="The name of the Secret.")


class VolumeRetention(Section):
    """What happens to volumes that are no longer needed."""

    when_deleted: Retention = Field(default="Retain", description="Whether volumes are deleted with the resource.")
    when_scaled: Retention = Field(
        default="Delete",
        description="Whether a scale-down deletes the volume of a drained pod. A volume with jobs is always kept.",
    )


class Storage(Section):
    """The volume of each pod."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "self.ephemeral == oldSelf.ephemeral",
                "storage.ephemeral cannot be changed: create another cluster and move producers, then workers",
            ),
            rule(
                "has(self.className) == has(oldSelf.className) && "
                "(!has(self.className) || self.className == oldSelf.className)",
                "storage.className cannot be changed: create another cluster and move producers, then workers",
            ),
            rule(
                "isQuantity(self.size) && quantity(self.size).isGreaterThan(quantity('0'))",
                "storage.size must be a quantity such as 10Gi",
            ),
        )
    )

    ephemeral: bool = Field(
        default=False,
        description="Run without volumes: jobs are in memory only. A pod is drained before it is replaced, and its "
        "replacement joins as a new member.",
    )
    size: Annotated[str, Field(max_length=32)] = Field(
        default="2Gi",
        description="Size of the volume of each pod. You can increase it later if the StorageClass can expand volumes.",
    )
    class_name: Name | None = Field(
        default=None, description="StorageClass of the volumes. Defaults to the default StorageClass of Kubernetes."
    )
    retention: VolumeRetention = VolumeRetention()


class Persistence(Section):
    """The append-only file."""

    appendonly: bool = Field(
        default=True, description="Whether every change is written to the file, so that jobs survive a restart."
    )
    fsync: Literal["always", "everysec", "no"] = Field(
        default="everysec", description="When the file is synced to disk. With `always` it is synced before each reply."
    )


class Auth(Section):
    """Password authentication."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!has(self.secretName) || self.enabled",
                "auth.secretName has no effect with auth.enabled: false: remove one of them",
            ),
            rule(
                "!has(self.secretName) || self.rotation == 0",
                "auth.rotation is for generated passwords: change the password in the Secret auth.secretName instead",
            ),
        )
    )

    enabled: bool = Field(default=True, description="Whether clients need a password.")
    secret_name: Name | None = Field(
        default=None, description="A Secret of yours with the key `password`. Without it, a password is generated."
    )
    rotation: Annotated[int, Field(ge=0)] = Field(
        default=0, description="Change this number to have a new password generated."
    )
    grace_s: Annotated[int, Field(ge=0, le=_WEEK_S)] = Field(
        default=300, description="How long the previous password remains valid after a rotation, in seconds."
    )


class IssuerReference(Section):
    """An issuer of cert-manager."""

    name: Name = Field(description="The name of the issuer.")
    kind: Annotated[str, Field(max_length=64)] = Field(
        default="Issuer", description="`Issuer`, or `ClusterIssuer` for one that all namespaces share."
    )
    group: Name = Field(default="cert-manager.io", description="API group of the issuer.")


class Tls(Section):
    """Encryption of connections. The certificate is generated, signed by cert-manager, or yours."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!has(self.secretName) || !has(self.issuerRef)",
                "tls.secretName is a certificate of yours, tls.issuerRef makes one: remove one of them",
            ),
            rule(
                "self.enabled || (!has(self.secretName) && !has(self.issuerRef))",
                "tls.secretName and tls.issuerRef have no effect with tls.enabled: false: set it to true",
            ),
            rule(
                "!self.enabled || self.clients != 'Disabled' || self.bus || self.http",
                "tls.enabled has no effect if tls.clients is Disabled, and tls.bus and tls.http are false",
            ),
            rule(
                "self.clientCertificates == 'Disabled' || self.clients != 'Disabled'",
                "tls.clientCertificates needs tls.clients: Required or Optional",
            ),
            rule(
                "!has(self.dnsNames) || size(self.dnsNames) == 0 || !has(self.secretName)",
                "tls.dnsNames is for certificates that are made for the cluster, not for one of yours in "
                "tls.secretName: remove one of them",
            ),
            rule(
                "self.rotation == 0 || (!has(self.secretName) && !has(self.issuerRef))",
                "tls.rotation is for generated authorities: without tls.secretName and tls.issuerRef",
            ),
        )
    )

    enabled: bool = Field(default=False, description="Whether brokers have a certificate and use TLS.")
    secret_name: Name | None = Field(
        default=None,
        description="A Secret of yours with the keys `tls.crt`, `tls.key` and `ca.crt`. Brokers read a renewed "
        "certificate without a restart.",
    )
    issuer_ref: IssuerReference | None = Field(
        default=None,
        description="An issuer of cert-manager, which makes and renews the certificate. Without it and without "
        "`secretName`, the operator does so with an authority of the cluster's own.",
    )
    dns_names: Annotated[tuple[Name, ...], Field(max_length=32)] = Field(
        default=(),
        description="More names in the certificate, for example of a load balancer. The names of the services and "
        "of all pods are always in it.",
    )
    clients: TlsUse = Field(
        default="Required",
        description="Whether clients use TLS, on port 7712. Required: the port without TLS is closed. Optional: both "
        "ports are open, for example while clients migrate. Disabled: only the port without TLS is open.",
    )
    client_certificates: TlsUse = Field(
        default="Disabled",
        description="Whether clients need a certificate of their own, signed by an authority in `ca.crt`. Optional: "
        "it is verified if a client has one.",
    )
    bus: bool = Field(
        default=True,
        description="Whether members use TLS between each other. A running cluster is switched in two roll-outs.",
    )
    http: bool = Field(
        default=False, description="Whether probes, metrics and the console are on HTTPS. Scrapers must know that."
    )
    rotation: Annotated[int, Field(ge=0)] = Field(
        default=0, description="Change this number to have the generated authority replaced by a new one."
    )
    grace_s: Annotated[int, Field(ge=180, le=30 * _DAY_S)] = Field(
        default=_DAY_S,
        description="How long a new generated authority is trusted before it signs, and the previous one is trusted "
        "afterwards, in seconds. Give clients this time to read `ca.crt` again.",
    )


class ClusterSecret(Section):
    """A secret that members prove to each other, so that no other program can act as one of them."""

    enabled: bool = Field(
        default=False,
        description="Whether members have a secret. It is generated, and a running cluster gets it in two roll-outs.",
    )
    rotation: Annotated[int, Field(ge=0)] = Field(
        default=0, description="Change this number to have a new secret generated, which takes two roll-outs."
    )


class PodDisruptionBudget(Section):
    """The PodDisruptionBudget. A single member with a volume has none, because it would block every eviction."""

    enabled: bool = Field(default=True, description="Whether there is a budget.")
    max_unavailable: Annotated[int, Field(ge=1, le=MOST_MEMBERS)] = Field(
        default=1,
        description="How many ready pods may be evicted at the same time; less than `replicas`. Pods without a volume "
        "are never evicted: the operator drains and deletes those on a cordoned Kubernetes node, one by one.",
    )


class Egress(Section):
    """Outgoing connections of the members."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "self.enabled || !has(self.rules) || size(self.rules) == 0",
                "networkPolicy.egress.rules has no effect with networkPolicy.egress.enabled: false: remove one of them",
            )
        )
    )

    enabled: bool = Field(
        default=False, description="Whether members may connect only to each other, to DNS, and as `rules` allow."
    )
    rules: Annotated[tuple[NetworkPolicyEgressRule, ...], Field(max_length=32)] = Field(
        default=(),
        description="What else members may connect to, for example members of another cluster that jobs are sent to.",
    )


class NetworkPolicy(Section):
    """The NetworkPolicy. Only members may connect to the bus port, 17711. The operator may connect to the others."""

    enabled: bool = Field(default=True, description="Whether there is a policy.")
    clients: Annotated[tuple[NetworkPolicyPeer, ...], Field(max_length=32)] = Field(
        default=(), description="Peers that may connect to the port for clients, 7711. Empty: all."
    )
    monitoring: Annotated[tuple[NetworkPolicyPeer, ...], Field(max_length=32)] = Field(
        default=(),
        description="Peers that may connect to the HTTP port, 9711: Prometheus, and users of the console. Empty: those "
        "in `clients`.",
    )
    external: Annotated[tuple[NetworkPolicyPeer, ...], Field(max_length=32)] = Field(
        default=(),
        description="Peers that may connect to the ports for clients outside of Kubernetes, 7713 and 7714, which are "
        "open with `exposure`. Empty: all.",
    )
    egress: Egress = Egress()


class PodMonitor(Section):
    """The PodMonitor, with which the Prometheus Operator scrapes each broker."""

    enabled: bool = Field(
        default=False,
        description="Whether there is a PodMonitor. Without the Prometheus Operator it has no effect; it is created "
        "some minutes after that is installed.",
    )
    labels: Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=32)] = Field(
        default={}, description="Labels of the PodMonitor, with which Prometheus selects it."
    )
    interval: Annotated[str, Field(max_length=16, pattern="^([0-9]+(ms|s|m|h))+$")] | None = Field(
        default=None, description="Scrape interval, such as 30s. Defaults to that of Prometheus."
    )
    queues: Annotated[tuple[Annotated[str, Field(max_length=256, min_length=1)], ...], Field(max_length=64)] = Field(
        default=(),
        description="Queues that always have series, however short they are, for example because workers are scaled by "
        "them.",
    )
    secret_name: Name | None = Field(
        default=None,
        description="A Secret with the keys `username` and `password` of a user who can run INFO. Needed if "
        "`config.http-auth` is yes.",
    )


class Monitoring(Section):
    """How Prometheus finds the brokers."""

    pod_monitor: PodMonitor = PodMonitor()


class Drain(Section):
    """How a member transfers its jobs before its pod is removed."""

    timeout_s: Annotated[int, Field(ge=1, le=_WEEK_S)] = Field(
        default=3600, description="How long a drain may take before `onTimeout` applies, in seconds."
    )
    on_timeout: OnTimeout = Field(
        default="Wait",
        description="What happens when the timeout expires. Wait: continue draining. Retain: stop the pod and keep "
        "its volume with the remaining jobs. Force: drop the remaining jobs; requires the annotation "
        f'{names.ALLOW_JOB_LOSS}: "true" on the resource.',
    )


Day: TypeAlias = Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
TimeOfDay: TypeAlias = Annotated[str, Field(max_length=5, pattern="^([01][0-9]|2[0-3]):[0-5][0-9]$")]


class UpgradeWindow(Section):
    """When an update may start that comes with the operator: another default image, or another pod template.

    Changes of the spec are applied at once. An update that has started continues when the window closes.
    """

    days: Annotated[tuple[Day, ...], Field(min_length=1, max_length=7)] = Field(
        default=get_args(Day), description="Days on which the window opens. Defaults to all."
    )
    start: TimeOfDay = Field(description="Local time when the window opens, for example `22:00`.")
    end: TimeOfDay = Field(
        description="Local time when it closes, for example `04:00`; on the next day if that is not after `start`."
    )
    time_zone: Annotated[str, Field(max_length=64, min_length=1)] = Field(
        default="UTC", description="Time zone by its name, for example `Europe/Berlin`."
    )


class Upgrade(Section):
    """How pods are replaced, one at a time, after a change of the image or of a setting that needs a restart."""

    soak_s: Annotated[int, Field(ge=0, le=3600)] = Field(
        default=5, description="How long the cluster must be healthy before the next pod is replaced, in seconds."
    )
    timeout_s: Annotated[int, Field(ge=1, le=_DAY_S)] = Field(
        default=600,
        description="When a replaced pod that is not ready counts as failed, in seconds. The remaining pods are not "
        "replaced until it is ready.",
    )
    window: UpgradeWindow | None = Field(
        default=None,
        description="When an update may start that comes with the operator. By default, at any time.",
    )


class SpecFields(Section):
    """The desired state of the cluster."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "self.replicas >= 1",
                "replicas must be at least 1: to stop all members and keep their jobs, set hibernate: true",
            ),
            rule(
                "self.replicas < 1 || self.replicas >= self.minReplicas",
                "replicas must not be less than minReplicas: lower minReplicas too if you want fewer members",
            ),
            rule(
                "self.replicas < 2 || !self.podDisruptionBudget.enabled || "
                "self.podDisruptionBudget.maxUnavailable < self.replicas",
                "podDisruptionBudget.maxUnavailable must be less than replicas, or all members may be evicted at once",
            ),
            rule(
                f"!has(self.httpApi) || (self.service.port != {names.HTTP_PORT} && "
                f"self.service.tlsPort != {names.HTTP_PORT})",
                f"service.port and service.tlsPort must not be {names.HTTP_PORT}, which is the port of httpApi",
            ),
            rule(
                "!self.storage.ephemeral || !self.persistence.appendonly",
                "storage.ephemeral keeps no files: set persistence.appendonly: false too",
            ),
            rule(
                "!self.storage.ephemeral || !self.hibernate",
                "storage.ephemeral keeps no jobs while no pod runs: hibernate needs a cluster with volumes",
            ),
            rule(
                "!self.storage.ephemeral || !self.ordered.enabled",
                "ordered queues are on volumes: ordered.enabled needs storage.ephemeral: false",
            ),
            rule(
                "!self.ordered.enabled || self.replicas < 1 || self.replicas >= self.ordered.replicas",
                "ordered.replicas must not exceed replicas, or there are too few members for ordered queues",
            ),
            rule(
                "!has(self.bootstrap) || (!self.storage.ephemeral && self.persistence.appendonly)",
                "bootstrap.fromBackup writes files to volumes: it needs storage.ephemeral: false and "
                "persistence.appendonly: true",
            ),
            rule(
                "has(self.bootstrap) == has(oldSelf.bootstrap) && "
                "(!has(self.bootstrap) || self.bootstrap == oldSelf.bootstrap)",
                "bootstrap cannot be changed: it says what a new cluster begins with, so create another cluster",
            ),
        )
    )

    replicas: Annotated[int, Field(le=MOST_MEMBERS)] = Field(
        default=3, description="Number of cluster members. Each member runs in its own pod."
    )
    min_replicas: Annotated[int, Field(ge=1, le=MOST_MEMBERS)] = Field(
        default=1,
        description="A scale-down never leaves fewer members than this, nor fewer than the highest REPLICATE of a job.",
    )
    image: Annotated[str, Field(max_length=512, min_length=1)] | None = Field(
        default=None,
        description="Image of the broker. By default, the one that the operator is configured with; when that changes, "
        "clusters are updated one after another, in `upgrade.window`.",
    )
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = Field(
        default=None, description="When the image is pulled."
    )
    image_pull_secrets: Annotated[tuple[SecretReference, ...], Field(max_length=16)] = Field(
        default=(),
        description="Secrets for pulling the image.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    resources: Resources = Field(
        default={}, description="CPU and memory of each broker. Set a memory limit in production."
    )
    storage: Storage = Storage()
    persistence: Persistence = Persistence()
    config: Annotated[dict[str, Annotated[str, Field(max_length=256)]], Field(max_length=64)] = Field(
        default={},
        description="Directives of the broker by name (docs/configuration.md). Values are strings: quote numbers. "
        "Directives that can change at run time are applied without a restart.",
    )
    maxmemory: Annotated[str, Field(max_length=32)] = Field(
        default="auto",
        description="Memory for jobs on each member: `auto`, a share of the memory limit such as `75%`, or a size such "
        "as `2gb`. `auto` is 75 % of the memory limit (60 % of limits below 512 MiB), or of the memory request if "
        "there is no limit.",
        json_schema_extra=rules(
            rule(
                "self == 'auto' || (self.matches('^([1-9][0-9]?|100)%$')) || "
                "self.lowerAscii().matches('^0*[1-9][0-9]{0,17}(b|k|kb|m|mb|g|gb)?$')",
                "maxmemory must be auto, a share of the memory limit such as 75%, or a size such as 512mb or 2gb (not "
                "512Mi)",
            )
        ),
    )
    auth: Auth = Auth()
    tls: Tls = Tls()
    cluster_secret: ClusterSecret = ClusterSecret()
    service: ClientService = ClientService()
    http_api: Literal["read", "full"] | None = Field(
        default=None,
        description="Whether brokers serve the HTTP API: `read` for requests that change nothing, or `full`. The "
        f"service for clients then also has the port {names.HTTP_PORT}. By default, there is no HTTP API.",
    )
    exposure: Exposure | None = Field(
        default=None,
        description="How clients outside of Kubernetes reach the members. By default, they do not.",
    )
    affinity: Affinity | None = Field(
        default=None,
        description="Affinity of the pods. Unless it has `podAntiAffinity`, pods prefer different Kubernetes nodes.",
    )
    tolerations: Annotated[tuple[Toleration, ...], Field(max_length=32)] = Field(
        default=(), description="Tolerations of the pods."
    )
    node_selector: Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=32)] = Field(
        default={}, description="Labels that a Kubernetes node must have to run pods."
    )
    topology_spread_constraints: Annotated[tuple[TopologySpreadConstraint, ...], Field(max_length=16)] | None = Field(
        default=None,
        description="How pods are spread. By default, evenly over zones where possible. A constraint without "
        "labelSelector applies to the pods of the cluster.",
    )
    priority_class_name: Name | None = Field(default=None, description="PriorityClass of the pods.")
    pod_template: Json = Field(
        default={},
        description="Applied to the pod template as a strategic merge patch, for example to add sidecars, volumes, "
        "labels or a security context. null removes a field. Fields that the cluster depends on cannot be set.",
    )
    pod_disruption_budget: PodDisruptionBudget = PodDisruptionBudget()
    network_policy: NetworkPolicy = NetworkPolicy()
    monitoring: Monitoring = Monitoring()
    backup: Backup | None = Field(
        default=None, description="Backups of the jobs of all members, to an object store or a volume."
    )
    bootstrap: Bootstrap | None = Field(
        default=None, description="What a new cluster begins with. By default, with no jobs."
    )
    ordered: OrderedQueues = OrderedQueues()
    drain: Drain = Drain()
    upgrade: Upgrade = Upgrade()
    paused: bool = Field(
        default=False,
        description="Pause reconciliation: only the status is updated. A drain that already runs continues in the "
        "broker, but its pod is not removed.",
    )
    hibernate: bool = Field(
        default=False, description="Stop all members and keep their jobs on their volumes until this is false again."
    )


class Spec(SpecFields):
    """The desired state of one cluster, with what the operator needs of the resource's metadata."""

    model_config = ConfigDict(extra="forbid")

    name: str
    namespace: str
    uid: str = ""
    generation: int = 0
    annotations: dict[str, str] = Field(default={})
    """Annotations of the resource."""
    deleting: bool = False
    invalid: tuple[tuple[str, str], ...] = ()
    """Paths of fields whose values the model does not accept, and why. These fields have their defaults here."""


def parse(body: Mapping[str, Any]) -> Spec:
    """Read an object of the API server.

    The API server has validated the object, but possibly by the rules of an older definition. Fields that violate the
    present rules are listed in `invalid`.
    """
    metadata = body["metadata"]
    given, invalid = _accepted(body.get("spec") or {})
    return Spec(
        **given
        | {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata.get("uid", ""),
            "generation": metadata.get("generation", 0),
            "annotations": metadata.get("annotations") or {},
            "deleting": "deletionTimestamp" in metadata,
            "invalid": invalid,
        }
    )


def _accepted(given: Json) -> tuple[Json, tuple[tuple[str, str], ...]]:
    """Return the fields that the model accepts, and what is wrong with the others."""
    known = {field_name(attribute) for attribute in SpecFields.model_fields}
    fields = {name: value for name, value in given.items() if name in known}
    try:
        SpecFields.model_validate(fields)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False)
        invalid = tuple((f"spec.{_path(one['loc'])}", f"{one['msg']}, not {one['input']!r:.80}") for one in wrong)
        rejected = {one["loc"][0] for one in wrong}
        return {name: value for name, value in fields.items() if name not in rejected}, invalid
    return fields, ()


def _path(location: tuple[int | str, ...]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location).removeprefix(".")
