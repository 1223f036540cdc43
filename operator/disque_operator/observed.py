"""The observed state of a cluster at one moment. `observe` reads it from Kubernetes and the brokers for `plan`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from disque_operator.apivalues import Json
from disque_operator.busmode import PLAIN, BusMode
from disque_operator.certificate_files import Authorities, TlsFiles
from disque_operator.orderedstate import OrderedStatus
from disque_operator.runs import Run

LOCKED: Final = "it rejects the current and the previous password"
"""The reason in `Observed.unreachable` for a broker that runs, but whose password is unknown."""


def password_hash(password: str) -> str:
    """Return the SHA-256 of a password in hexadecimal, as ACL GETUSER shows it."""
    return hashlib.sha256(password.encode()).hexdigest()


@dataclass(frozen=True)
class Node:
    """A Kubernetes node."""

    zone: str = ""
    cordoned: bool = False
    addresses: tuple[tuple[str, str], ...] = ()
    """Type and address of each of its addresses, such as InternalIP."""


@dataclass(frozen=True)
class Pod:
    """A pod of the cluster."""

    name: str
    ordinal: int
    uid: str
    revision: str
    """The label `controller-revision-hash`, which identifies the pod template."""
    image: str
    age_s: float
    phase: str = "Pending"
    ready: bool = False
    ready_for_s: float = 0.0
    terminating: bool = False
    ip: str = ""
    node: str = ""
    """The name of the Kubernetes node."""
    trouble: str = ""
    """Why it does not run, as a reason of Kubernetes: ImagePullBackOff, ErrImagePull, CrashLoopBackOff, Unschedulable,
    CreateContainerConfigError, OOMKilled, …"""
    trouble_text: str = ""
    restarts: int = 0
    tls: bool = False
    """Whether it has a port for clients with TLS."""
    bus: BusMode = PLAIN
    """How it protects the bus."""
    drain: bool = False
    """Whether its annotation names.DRAIN is `true`."""
    zone: str = ""
    """The zone of its Kubernetes node; empty if unknown."""
    cordoned: bool = False
    """Whether its Kubernetes node is cordoned: it gets no new pods, and probably loses those that it has."""
    external: frozenset[str] = frozenset()
    """The names of its ports for clients outside of Kubernetes."""
    node_addresses: tuple[tuple[str, str], ...] = ()
    """The addresses of its Kubernetes node; empty if unknown."""


@dataclass(frozen=True)
class Peer:
    """A line of CLUSTER NODES: what one broker knows about another member."""

    node_id: str
    host: str
    """The announced host name, or the address."""
    connected: bool
    failing: bool
    """PFAIL or FAIL."""
    leaving: bool
    silent_s: float
    """Seconds since its last reply."""


@dataclass(frozen=True)
class Leaving:
    """The status of CLUSTER LEAVING of a broker that is leaving."""

    done: bool
    jobs_left: int
    rate: float
    seconds_left: float
    seconds_elapsed: float
    waits_for: str = ""
    replicas_left: int = 0
    """Replicas of ordered queues that it still has."""


@dataclass(frozen=True)
class Broker:
    """A broker that answered."""

    pod: str
    node_id: str
    """The node ID. A loading broker does not report it: then it is the last one in the status, or empty."""
    version: str
    loading: bool = False
    leaving: Leaving | None = None
    peers: tuple[Peer, ...] = ()
    """All other members that it lists; none while it loads."""
    jobs: int = 0
    queued: int = 0
    queues: int = 0
    waiting_for_copies: int = 0
    max_replicate: int = 1
    """The highest REPLICATE of its jobs, including jobs with copies elsewhere."""
    used_memory: int = 0
    max_memory: int = 0
    file_format: int = 0
    """The format of its append-only file; 0 if it does not report it."""
    refusing: str = ""
    """Why it accepts no new jobs because of its disk; empty if it does."""
    repairs: str = ""
    """What it waits for before all jobs have their copies (`waits-for` of CLUSTER REPAIR STATUS); empty if they do."""
    repair_stuck_s: float = 0.0
    """For how long it has made no progress with that."""
    clock_ahead_ms: int = 0
    """How far its clock is ahead of the other members while it accepts no new jobs for that; otherwise 0."""
    uptime_s: float = 0.0
    meeting: frozenset[str] = frozenset()
    """The addresses to which it has sent a MEET that is not answered yet."""
    config: Mapping[str, str] = field(default_factory=dict)
    """CONFIG GET of the directives that the spec sets and that can change at run time, of `maxmemory`, and of
    those that differ between members, such as `cluster-announce-hostname`."""
    password_hashes: frozenset[str] = field(default=frozenset(), repr=False)
    """The `password_hash` of each password that it accepts; empty if it needs none."""
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The rules of its users by name, as ACL LIST shows them; empty if no resource concerns users."""
    permissions: frozenset[str] = frozenset()
    """The commands and categories (`@producer`) that its rules can name; empty if no resource concerns users."""
    pauses: Mapping[str, str] = field(default_factory=dict)
    """`none`, `in`, `out` or `all`, by queue, for the queues that resources name."""
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """What is set for exactly these queues (QCONF), without `pause`; no entry if the broker does not know QCONF."""
    schedules: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """What these schedules do, empty if they are not set; no entry if the broker does not know SCHEDULE."""
    ordered: OrderedStatus | None = None
    """The ordered queues, as it knows them; None if it does not know ordered queues."""


@dataclass(frozen=True)
class Volume:
    """A volume claim of the cluster."""

    name: str
    ordinal: int
    uid: str
    size: str
    bound: bool
    terminating: bool = False
    drained: str = ""
    """Its annotation names.DRAINED; empty if it has none."""
    owned: bool = False
    """Whether the resource owns it, so that it is deleted with the resource."""
    capacity: str = ""
    """The size of the volume itself, which is less than `size` until an expansion is complete; empty if unknown."""
    class_name: str | None = None
    """Its StorageClass; empty if it has none; None if Kubernetes does not tell."""
    resize: str = ""
    """The state of an expansion as Kubernetes reports it, such as `NodeResizePending`; empty while there is none."""
    resize_text: str = ""
    """The message about that state."""


@dataclass(frozen=True)
class Budget:
    """A PodDisruptionBudget."""

    name: str
    allowed: int
    """How many pods may be evicted now."""


@dataclass(frozen=True)
class StatefulSet:
    """The StatefulSet with the state of its controller."""

    replicas: int
    revision: str
    """`status.updateRevision`: the revision of new pods."""
    up_to_date: bool
    """Whether the controller has processed the last change; until then `revision` may be outdated."""
    image: str
    uid: str = ""
    hibernated_members: int = 0
    """Its annotation names.HIBERNATED_MEMBERS; 0 if it has none."""
    chosen_image: str = ""
    """Its annotation names.IMAGE; empty if it has none, as in earlier releases."""
    update: str = ""
    """Its annotation names.UPDATE: `waiting`, `running`, or empty."""
    spec_digest: str = ""
    """Its annotation names.SPEC_DIGEST."""
    template_digest: str = ""
    """Its annotation names.TEMPLATE_DIGEST."""


@dataclass(frozen=True)
class Passwords:
    """The contents of the brokers' Secret `names.auth_secret`; of the clients' Secret only the current password."""

    current: str
    """The password for clients."""
    former: str | None = None
    """The previous password, while brokers still accept it."""
    rotation: int = 0
    rotated_s_ago: float = 0.0
    rotated_at: str = ""
    """The annotation names.ROTATED_AT."""
    following: str | None = None
    """The next password, which becomes the current one when all brokers accept it."""


@dataclass(frozen=True)
class Revert:
    """A field of an object that was changed back after each apply of a manifest (`reverts`)."""

    field: str
    digest: str
    """The annotation names.APPLIED of the manifest."""
    waits: bool
    """Whether it must not be applied again yet."""


@dataclass(frozen=True)
class Declared:
    """A DisqueUser, DisqueQueue, DisqueSchedule or DisqueBackup of the cluster."""

    resource: Json
    """The object, without its managed fields."""
    secret: Json | None = None
    """The Secret with the password of a user, its own or the generated one; None if it does not exist."""


@dataclass(frozen=True)
class Kept:
    """What the Secret `names.auth_secret` keeps about a user, queue or schedule, for when its resource is deleted."""

    uid: str
    """The UID of the resource."""
    retain: bool
    """Whether everything stays when the resource is deleted."""
    rules: str = field(default="", repr=False)
    """The rules of a user that all brokers accepted, which brokers read when they start."""
    removed_at: str = ""
    """When the resource was found to be deleted; empty before, and if it is retained."""
    removed_s_ago: float = 0.0
    has_settings: bool = False
    """Whether the resource of a queue has `settings`."""
    ordered: bool = False
    """Whether the resource is of an ordered queue."""
    drops_jobs: bool = False
    """Whether an ordered queue is dropped with the jobs that it has."""


@dataclass(frozen=True)
class Platform:
    """What this Kubernetes has that others lack."""

    pod_monitors: bool = False
    """Whether it has PodMonitors, which the Prometheus Operator brings."""
    assigns_ids: bool = False
    """Whether it assigns users and groups to pods and rejects others, as OpenShift does."""


@dataclass(frozen=True)
class Observed:
    """Everything that was observed."""

    pods: tuple[Pod, ...] = ()
    """Pods, sorted by ordinal."""
    brokers: Mapping[str, Broker] = field(default_factory=dict)
    """Brokers that answered, by pod."""
    unreachable: Mapping[str, str] = field(default_factory=dict)
    """Why the other brokers did not answer, by pod."""
    stateful_set: StatefulSet | None = None
    volumes: tuple[Volume, ...] = ()
    passwords: Passwords | None = None
    """None if the brokers' Secret or its key does not exist."""
    client_passwords: Passwords | None = None
    """The same of the clients' Secret `names.client_secret`."""
    own_password: str | None = None
    """The `password` in the Secret `spec.auth.secret_name`; None if the Secret or its key does not exist."""
    tls: TlsFiles | None = None
    """The Secret with the certificate of the brokers; None if it does not exist."""
    authorities: Authorities | None = None
    """The authorities of the cluster's own; None if there are none."""
    bus_secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The entries of the Secret names.bus_secret; none if it does not exist."""
    serves_certificates: bool = False
    """Whether the API server has the resources of cert-manager. It is looked up only with `tls.issuerRef`."""
    users: tuple[Declared, ...] = ()
    """The DisqueUsers of the cluster, the oldest first."""
    queues: tuple[Declared, ...] = ()
    """The DisqueQueues of the cluster, the oldest first."""
    schedules: tuple[Declared, ...] = ()
    """The DisqueSchedules of the cluster, the oldest first."""
    backups: tuple[Declared, ...] = ()
    """The DisqueBackups of the cluster, the oldest first."""
    runs: tuple[Run, ...] = ()
    """The Jobs of the cluster, which make and restore backups, by name."""
    kept_users: Mapping[str, Kept] = field(default_factory=dict)
    """By the name of the user."""
    kept_queues: Mapping[str, Kept] = field(default_factory=dict)
    """By the name of the queue."""
    kept_schedules: Mapping[str, Kept] = field(default_factory=dict)
    """By the name of the schedule."""
    expandable: Mapping[str, bool] = field(default_factory=dict)
    """Whether the StorageClasses of claims that are too small can expand volumes, as far as they could be read."""
    children: Mapping[tuple[str, str], Json] = field(default_factory=dict)
    """All objects with the label or with a name of the cluster (`names`), by kind and name."""
    reverts: Mapping[tuple[str, str], Revert] = field(default_factory=dict)
    """Fields that are changed back, by kind and name of the object."""
    quota: str = ""
    """Why pods could not be created (quota, admission), by the events of the StatefulSet; empty if they could."""
    status: Json = field(default_factory=dict)
    """The present status of the resource."""
    operator: str = ""
    """The operator that acts on the cluster (`ownership`)."""
    default_image: str = ""
    """The image that the operator gives to clusters whose spec has none."""
    waits_for: str = ""
    """The cluster that must be updated before this one; empty if this one may be updated now."""
    foreign_budgets: tuple[Budget, ...] = ()
    """PodDisruptionBudgets of others that cover the pods."""
    privileged: bool = False
    """Whether `spec.podTemplate` may give pods privileges (the option `pod-templates`)."""
    sees_nodes: bool = True
    """Whether the operator is permitted to read Kubernetes nodes."""
    platform: Platform = Platform()
    operator_namespace: str = ""
    """The namespace of the operator's pods, which the NetworkPolicy admits; empty if it does not run in a pod."""
