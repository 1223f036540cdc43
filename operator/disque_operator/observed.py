"""What there is: a cluster as Kubernetes and its nodes show it at one moment. Made by `observe`, read by `plan`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from disque_operator.apivalues import Json

LOCKED: Final = "it takes neither the current password nor the former one"
"""Why a broker that runs did not answer, in `Observed.silent`: nobody knows its password any more."""


@dataclass(frozen=True)
class Pod:
    """A pod of the cluster."""

    name: str
    ordinal: int
    uid: str
    revision: str
    """`controller-revision-hash`: which pod template it was made from."""
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
    """Why it does not run, by Kubernetes' word: ImagePullBackOff, ErrImagePull, CrashLoopBackOff, Unschedulable,
    CreateContainerConfigError, OOMKilled, …"""
    trouble_text: str = ""
    restarts: int = 0
    drain: bool = False
    """Whether its annotation names.DRAIN is `true`: somebody wants it empty for a while."""


@dataclass(frozen=True)
class Peer:
    """A line of CLUSTER NODES: what one node knows of another member."""

    node_id: str
    host: str
    """The announced name, or the address."""
    connected: bool
    failing: bool
    """PFAIL or FAIL."""
    leaving: bool
    silent_s: float
    """Since it answered last."""


@dataclass(frozen=True)
class Leaving:
    """CLUSTER LEAVING status of a node that leaves."""

    done: bool
    jobs_left: int
    rate: float
    seconds_left: float
    seconds_elapsed: float
    waits_for: str = ""


@dataclass(frozen=True)
class Broker:
    """A broker that answered."""

    pod: str
    node_id: str
    """Of one that loads, which does not say it: the one that the status has for its pod, or empty."""
    version: str
    loading: bool = False
    leaving: Leaving | None = None
    peers: tuple[Peer, ...] = ()
    """All other members it knows; none while it loads."""
    jobs: int = 0
    queued: int = 0
    queues: int = 0
    waiting_for_copies: int = 0
    max_replicate: int = 1
    """The highest REPLICATE of a job it has, clusterwide jobs with copies elsewhere included."""
    used_memory: int = 0
    max_memory: int = 0
    refusing: str = ""
    """Why it takes no new jobs (disk); empty when it does."""
    uptime_s: float = 0.0
    config: Mapping[str, str] = field(default_factory=dict)
    """CONFIG GET of the directives that the spec sets and that can be changed while it runs, of `maxmemory` if the spec
    fixes it, and of `cluster-announce-hostname`."""
    requirepass: str = field(default="", repr=False)
    """Its password; of one that loads, which does not say it, the one that it took. Empty for none,"""
    requirepass_former: str = field(default="", repr=False)
    """and the other one that it takes."""

    @property
    def takes(self) -> frozenset[str]:
        """The passwords that open it."""
        return frozenset((self.requirepass, self.requirepass_former)) - {""}


@dataclass(frozen=True)
class Volume:
    """A claim of the cluster."""

    name: str
    ordinal: int
    uid: str
    size: str
    bound: bool
    terminating: bool = False
    drained: str = ""
    """Its annotation names.DRAINED."""
    owned: bool = False
    """Whether the resource is among its owners, so that it goes with it."""


@dataclass(frozen=True)
class StatefulSet:
    """The StatefulSet, as its controller sees it."""

    replicas: int
    revision: str
    """`status.updateRevision`: what new pods are made from."""
    up_to_date: bool
    """Whether the controller has seen the last change: until then `revision` may be an old one."""
    image: str
    uid: str = ""
    hibernated_members: int = 0
    """Its annotation names.ASLEEP."""


@dataclass(frozen=True)
class Passwords:
    """What the Secret `names.auth_secret` holds."""

    current: str
    """What clients are given."""
    former: str | None = None
    """The one before, as long as nodes take it as well."""
    rotation: int = 0
    rotated_s_ago: float = 0.0
    rotated_at: str = ""
    """The text of names.ROTATED_AT; a new password gets the time of now in the same form."""
    following: str | None = None
    """The one that becomes the current one when all nodes take it."""


@dataclass(frozen=True)
class Observed:
    """All of it."""

    pods: tuple[Pod, ...] = ()
    """By ordinal."""
    brokers: Mapping[str, Broker] = field(default_factory=dict)
    """Brokers that answered, by pod,"""
    unreachable: Mapping[str, str] = field(default_factory=dict)
    """and why the others did not, by pod."""
    stateful_set: StatefulSet | None = None
    volumes: tuple[Volume, ...] = ()
    passwords: Passwords | None = None
    """None: the Secret is missing, or lacks the key."""
    own_password: str | None = None
    """With `spec.auth.secret_name`: the `password` in it; None when that Secret is missing or lacks the key."""
    children: Mapping[tuple[str, str], Json] = field(default_factory=dict)
    """All objects with the cluster's label, and those of the names that `names` gives, by kind and name."""
    quota: str = ""
    """What the StatefulSet's events say of pods that could not be made (quota, admission); empty when nothing."""
    status: Json = field(default_factory=dict)
    """The status of the resource as it is."""
    operator_namespace: str = ""
    """Where the operator's own pods run, which the NetworkPolicy lets through; empty when it is no pod."""
