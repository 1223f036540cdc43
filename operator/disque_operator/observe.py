"""Observes a cluster: reads its objects and its brokers into the values that `plan` needs.

Before a round acts, objects are listed by the label of the cluster, because what watches have reported may be outdated.
Brokers are queried in every round.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, Final

from disque_operator import names, resources, volumes
from disque_operator.apivalues import Json, condition_of, selects
from disque_operator.brokers import Asked, Connection, TlsPeer, UnreachableError, query
from disque_operator.busmode import read_mode
from disque_operator.certificate_files import AUTHORITY, Authorities, TlsFiles, read_authorities, read_files
from disque_operator.kube import NOT_FOUND, Kube, KubeError
from disque_operator.observed import (
    Broker,
    Budget,
    Declared,
    Kept,
    Node,
    Observed,
    Passwords,
    Platform,
    Pod,
    StatefulSet,
)
from disque_operator.resources.encryption import secret_name
from disque_operator.resources.users import KEPT_KEY
from disque_operator.runs import runs_of
from disque_operator.spec import Spec
from disque_operator.verification import client_context

LISTED: Final = (
    "ConfigMap",
    "CronJob",
    "Job",
    "NetworkPolicy",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "Secret",
    "Service",
    "ServiceAccount",
    "StatefulSet",
)
"""Kinds of the objects of a cluster."""
NAMED: Final[tuple[tuple[str, Callable[[str], str]], ...]] = (
    ("ConfigMap", names.ca_config_map),
    ("ConfigMap", names.config_map),
    ("CronJob", names.cron_job),
    ("NetworkPolicy", names.network_policy),
    ("PodDisruptionBudget", names.disruption_budget),
    ("Secret", names.auth_secret),
    ("Secret", names.client_secret),
    ("Secret", names.authority_secret),
    ("Secret", names.bus_secret),
    ("Secret", names.tls_secret),
    ("Service", names.client_service),
    ("Service", names.members_service),
    ("ServiceAccount", names.service_account),
    ("StatefulSet", names.stateful_set),
)
"""Objects that are also read by name, because they may have lost their label or belong to somebody else."""

ANNOUNCED: Final = "cluster-announce-hostname"
ALWAYS_ASKED: Final = (ANNOUNCED, "cluster-announce-external", "cluster-zone", "maxmemory")
"""Directives that are read in addition to those that the spec sets."""
QUOTA_S: Final = 600.0
"""How long the last event about a rejected pod counts, in seconds."""
UNVERIFIABLE: Final = "its certificate cannot be verified, because no authority is known"

_CORDONED: Final = ("", "node.kubernetes.io/unschedulable")
"""Keys of tolerations: of all taints, and of cordoned nodes."""
_EXTERNAL_PORTS: Final = (names.EXTERNAL_PORT_NAME, names.EXTERNAL_TLS_PORT_NAME)
_POD_HOST: Final = re.compile(r"(.+)-\d+\.\1-members\.[^.]+\.svc")
"""Host names that pods announce. Addresses of removed pods are reused, so another broker may answer."""

Address = Callable[[Pod], str]
"""Returns the address of the broker in a pod."""


def pod_address(pod: Pod) -> str:
    """Return the address by IP, which is the pod itself, whatever host names resolve to."""
    host = f"[{pod.ip}]" if ":" in pod.ip else pod.ip
    return f"{host}:{names.TLS_PORT if pod.tls else names.CLIENT_PORT}"


@dataclass(frozen=True)
class Objects:
    """The objects of a cluster."""

    by_name: Mapping[tuple[str, str], Json]
    """Objects by kind and name."""
    own_secret: Json | None
    """The Secret that `auth.secretName` names; None if it does not exist."""
    refusals: tuple[Json, ...]
    """Events of the StatefulSet about pods that could not be created."""
    tls_secret: Json | None = None
    """The Secret with the certificate of the brokers; None if it does not exist."""
    requested: tuple[Json, ...] | None = None
    """The Certificates of the cluster, which no watch reports; None if the API server does not have this resource."""
    user_secrets: Mapping[str, Json] = field(default_factory=dict)
    """The Secrets without a label of the cluster that DisqueUsers name, by name."""
    budgets: tuple[Json, ...] = ()
    """PodDisruptionBudgets of others in the namespace."""
    nodes: Mapping[str, Node] | None = None
    """The Kubernetes nodes of the pods by name; None if the operator is not permitted to read them."""
    expandable: Mapping[str, bool] = field(default_factory=dict)
    """Whether the StorageClasses of claims that are too small can expand volumes; only those that could be read."""


def nodes_of(found: Objects) -> set[str]:
    """Return the names of the Kubernetes nodes on which pods of the cluster run."""
    pods = (item for (kind, _), item in found.by_name.items() if kind == "Pod" and _is_broker(item))
    return {node for pod in pods if (node := pod["spec"].get("nodeName"))}


def _is_broker(pod: Json) -> bool:
    """Return whether a pod with the label of the cluster is one of its members, not of a Job."""
    return names.RUN_LABEL not in (pod["metadata"].get("labels") or {})


@dataclass(frozen=True)
class Observation:
    """The input of `plan`, and connections for `executor`."""

    observed: Observed
    connections: Mapping[str, Connection] = field(default_factory=dict)
    """Connections by pod."""


async def read_objects(kube: Kube, spec: Spec, platform: Platform) -> Objects:
    """Read all objects of a cluster."""
    selector = f"{names.CLUSTER_LABEL}={spec.name}"
    lists = await asyncio.gather(*(kube.list(kind, spec.namespace, labels=selector) for kind in LISTED))
    found = {(item["kind"], item["metadata"]["name"]): item for items in lists for item in items}
    missing = [key for key in _by_name(spec) if key not in found]
    others = await asyncio.gather(*(_get(kube, spec, *key) for key in missing))
    found |= {key: item for key, item in zip(missing, others, strict=True) if item is not None}
    found |= await _optional(kube, spec, platform)
    own = await kube.get("Secret", spec.namespace, spec.auth.secret_name) if spec.auth.secret_name else None
    budgets = await kube.list("PodDisruptionBudget", spec.namespace)
    foreign = tuple(item for item in budgets if item["metadata"]["name"] != names.disruption_budget(spec.name))
    tls = await _tls_secret(kube, spec, found)
    for kind in names.DECLARED:
        named = await read_declared(kube, kind, spec.namespace, spec.name)
        found |= {(kind, item["metadata"]["name"]): item for item in named}
    secrets = {_secret_of(item) for (kind, _), item in found.items() if kind == names.USER_KIND}
    missing_secrets = sorted(name for name in secrets if ("Secret", name) not in found)
    named_secrets = [await kube.get("Secret", spec.namespace, name) for name in missing_secrets]
    by_name = {secret["metadata"]["name"]: secret for secret in named_secrets if secret is not None}
    refusals = tuple(await _refusals(kube, spec, found))
    expandable = await volumes.read_expandable(kube, spec, found)
    return Objects(found, own, refusals, tls, await _requested(kube, spec), by_name, foreign, expandable=expandable)


def _by_name(spec: Spec) -> Iterator[tuple[str, str]]:
    """Yield kind and name of the objects that are also read by name."""
    yield from ((kind, name(spec.name)) for kind, name in NAMED)
    if spec.exposure is not None:
        yield from (("Service", names.external_service(spec.name, ordinal)) for ordinal in range(spec.replicas))


async def _tls_secret(kube: Kube, spec: Spec, found: Mapping[tuple[str, str], Json]) -> Json | None:
    if not spec.tls.enabled:
        return None
    name = secret_name(spec)
    return found.get(("Secret", name)) or await kube.get("Secret", spec.namespace, name)


async def _requested(kube: Kube, spec: Spec) -> tuple[Json, ...] | None:
    """Return the Certificates of the cluster; None if the API server does not have this resource."""
    if spec.tls.issuer_ref is None:
        return None
    try:
        found = await kube.list("Certificate", spec.namespace, labels=f"{names.CLUSTER_LABEL}={spec.name}")
    except KubeError as error:
        if error.status != NOT_FOUND:
            raise
        return None
    return tuple(found)


async def read_declared(kube: Kube, kind: str, namespace: str, cluster: str) -> list[Json]:
    """Read the resources of a kind that name a cluster."""
    return [item for item in await kube.list(kind, namespace) if names.cluster_of(item) == cluster]


def _secret_of(user: Json) -> str:
    """Return the name of the Secret with the password of a DisqueUser."""
    own = ((user.get("spec") or {}).get("passwordSecret") or {}).get("name")
    return str(own or names.user_secret(user["metadata"]["name"]))


def secrets_of_users(objects: Objects) -> frozenset[str]:
    """Return the names of the Secrets that DisqueUsers name and the operator did not make."""
    users = [item for (kind, _), item in objects.by_name.items() if kind == names.USER_KIND]
    own = (((user.get("spec") or {}).get("passwordSecret") or {}).get("name") for user in users)
    return frozenset(name for name in own if name)


def declared(found: Mapping[tuple[str, str], Json], kind: str, secrets: Mapping[str, Json]) -> tuple[Declared, ...]:
    """Return the resources of a kind, the oldest first, with the Secrets that they name."""
    resources = sorted(
        (item for (other, _), item in found.items() if other == kind),
        key=lambda item: (item["metadata"].get("creationTimestamp") or "", item["metadata"]["name"]),
    )
    return tuple(Declared(item, secrets.get(_secret_of(item))) for item in resources)


async def _optional(kube: Kube, spec: Spec, platform: Platform) -> dict[tuple[str, str], Json]:
    """Return objects of kinds that not every Kubernetes has, so no watch reports them."""
    key = ("PodMonitor", names.pod_monitor(spec.name))
    found = await _get(kube, spec, *key) if platform.pod_monitors else None
    return {} if found is None else {key: found}


async def _get(kube: Kube, spec: Spec, kind: str, name: str) -> Json | None:
    found = await kube.get(kind, spec.namespace, name)
    return {"apiVersion": found["apiVersion"], "kind": kind} | found if found is not None else None


async def _refusals(kube: Kube, spec: Spec, found: Mapping[tuple[str, str], Json]) -> list[Json]:
    """Return events about rejected pods. They are read only if pods are missing."""
    stateful_set = found.get(("StatefulSet", names.stateful_set(spec.name)))
    pods = sum(kind == "Pod" and names.is_pod(spec.name, name) for kind, name in found)
    if stateful_set is None or pods >= (stateful_set["spec"].get("replicas") or 0):
        return []
    uid = stateful_set["metadata"]["uid"]
    return await kube.list("Event", spec.namespace, fields=f"involvedObject.uid={uid},reason=FailedCreate")


async def observe_cluster(
    spec: Spec, status: Json, found: Objects, now_s: float, address: Address = pod_address
) -> Observation:
    """Return the observed state; all brokers are queried concurrently."""
    pods = _pods(spec, found, now_s)
    auth = found.by_name.get(("Secret", names.auth_secret(spec.name)))
    passwords = _passwords(auth, now_s)
    client_passwords = _passwords(found.by_name.get(("Secret", names.client_secret(spec.name))), now_s)
    own_password = _words(found.own_secret).get("password")
    keys = _keys(passwords, client_passwords, own_password)
    tls_secret = found.by_name.get(("Secret", secret_name(spec)), found.tls_secret) if spec.tls.enabled else None
    files = read_files(_data(tls_secret)) if tls_secret is not None else None
    context = _context(spec, found, files)
    asked = [pod for pod in pods if pod.ip and pod.phase == "Running"]
    kept = {kind: kept_in(auth, kind, now_s) for kind in ("users", "queues", "schedules")}
    labelled = {name: item for (kind, name), item in found.by_name.items() if kind == "Secret"}
    users = declared(found.by_name, names.USER_KIND, {**found.user_secrets, **labelled})
    declared_queues = declared(found.by_name, names.QUEUE_KIND, {})
    declared_schedules = declared(found.by_name, names.SCHEDULE_KIND, {})
    questions = Asked(
        sorted({*ALWAYS_ASKED, *resources.settings(spec)}),
        users=bool(users or kept["users"]),
        queues=sorted({*(names.queue_of(queue.resource) for queue in declared_queues), *kept["queues"]}),
        schedules=sorted({*(names.schedule_of(one.resource) for one in declared_schedules), *kept["schedules"]}),
    )
    answers = await asyncio.gather(*(_ask(spec, pod, address(pod), keys, questions, now_s, context) for pod in asked))
    known = {member.get("pod"): member.get("nodeId") or "" for member in status.get("members") or ()}
    brokers = {
        pod.name: _named(answer[0], known)
        for pod, answer in zip(asked, answers, strict=True)
        if not isinstance(answer, str)
    }
    unreachable = {pod.name: f"the pod is {pod.phase}" for pod in pods if pod not in asked}
    unreachable |= {pod.name: answer for pod, answer in zip(asked, answers, strict=True) if isinstance(answer, str)}
    observed = Observed(
        pods=pods,
        brokers=brokers,
        unreachable=unreachable,
        stateful_set=_stateful_set(found.by_name.get(("StatefulSet", names.stateful_set(spec.name)))),
        volumes=volumes.of_cluster(spec, found.by_name),
        passwords=passwords,
        client_passwords=client_passwords,
        own_password=own_password,
        tls=files,
        authorities=_authorities(found.by_name.get(("Secret", names.authority_secret(spec.name))), now_s),
        bus_secrets=_data(found.by_name.get(("Secret", names.bus_secret(spec.name)))),
        serves_certificates=found.requested is not None,
        expandable=found.expandable,
        children={**found.by_name, **{("Certificate", one["metadata"]["name"]): one for one in found.requested or ()}},
        users=users,
        queues=declared_queues,
        schedules=declared_schedules,
        backups=declared(found.by_name, names.BACKUP_KIND, {}),
        runs=runs_of(found.by_name, now_s),
        kept_users=kept["users"],
        kept_queues=kept["queues"],
        kept_schedules=kept["schedules"],
        quota=_quota(found.refusals, now_s),
        status=status,
        foreign_budgets=tuple(_foreign_budgets(found)),
        sees_nodes=found.nodes is not None,
    )
    connections = {
        pod.name: answer[1] for pod, answer in zip(asked, answers, strict=True) if not isinstance(answer, str)
    }
    return Observation(observed, connections)


def _pods(spec: Spec, found: Objects, now_s: float) -> tuple[Pod, ...]:
    """Return the pods of the members, by ordinal."""
    pods = (
        _pod(item, found.nodes or {}, now_s)
        for (kind, name), item in found.by_name.items()
        if kind == "Pod" and names.is_pod(spec.name, name)
    )
    return tuple(sorted(pods, key=lambda pod: pod.ordinal))


async def _ask(
    spec: Spec,
    pod: Pod,
    address: str,
    keys: tuple[str, ...],
    asked: Asked,
    now_s: float,
    context: ssl.SSLContext | None,
) -> tuple[Broker, Connection] | str:
    own_host = names.pod_host(spec.name, spec.namespace, pod.ordinal)
    if pod.tls and context is None:
        return UNVERIFIABLE
    tls = TlsPeer(context, own_host) if pod.tls and context is not None else None
    try:
        broker, connection = await query(pod.name, address, keys, asked, now_s, tls)
    except UnreachableError as error:
        return str(error)
    host = broker.config.get(ANNOUNCED, "")
    if _POD_HOST.fullmatch(host) and host != own_host:
        return f"the broker of {host} answers at its address"
    return broker, connection


def _context(spec: Spec, found: Objects, files: TlsFiles | None) -> ssl.SSLContext | None:
    """Return the settings of connections to brokers; None if no authority is known."""
    published = found.by_name.get(("ConfigMap", names.ca_config_map(spec.name)), {}).get("data") or {}
    return client_context(published.get(AUTHORITY, ""), files)


def _named(broker: Broker, known: Mapping[Any, str]) -> Broker:
    return broker if broker.node_id else replace(broker, node_id=known.get(broker.pod, ""))


# --- parsing objects --------------------------------------------------------------------------------------------------


def _pod(item: Json, nodes: Mapping[str, Node], now_s: float) -> Pod:
    metadata, spec, status = item["metadata"], item["spec"], item.get("status") or {}
    labels = metadata.get("labels") or {}
    node = nodes.get(spec.get("nodeName", ""), Node())
    ready = condition_of(status, "Ready")
    is_ready = ready.get("status") == "True"
    trouble, text = _trouble(status, now_s)
    return Pod(
        name=metadata["name"],
        ordinal=names.ordinal(metadata["name"]),
        uid=metadata["uid"],
        revision=labels.get("controller-revision-hash", ""),
        image=_image(spec),
        age_s=_age_s(metadata.get("creationTimestamp"), now_s),
        phase=status.get("phase", "Pending"),
        ready=is_ready,
        ready_for_s=_age_s(ready.get("lastTransitionTime"), now_s) if is_ready else 0.0,
        terminating="deletionTimestamp" in metadata,
        ip=status.get("podIP", ""),
        node=spec.get("nodeName", ""),
        trouble=trouble,
        trouble_text=text,
        tls=_has_port(spec, names.TLS_PORT_NAME),
        bus=read_mode(_container(spec).get("args") or ()),
        restarts=int(_broker(status).get("restartCount") or 0),
        drain=(metadata.get("annotations") or {}).get(names.DRAIN) == "true",
        zone=labels.get(names.ZONE_LABEL) or node.zone,
        cordoned=node.cordoned and not _tolerates_cordons(spec),
        external=frozenset(filter(partial(_has_port, spec), _EXTERNAL_PORTS)),
        node_addresses=node.addresses,
    )


def _tolerates_cordons(pod_spec: Json) -> bool:
    """Return whether a pod can be scheduled to a cordoned node: then moving it would not help."""
    return any(toleration.get("key", "") in _CORDONED for toleration in pod_spec.get("tolerations") or ())


HARMLESS: Final = frozenset({"", "ContainerCreating", "PodInitializing", "Completed"})
_IMAGE: Final = {"ErrImagePull": "ImagePullBackOff"}
"""Reasons that Kubernetes reports alternately."""
_SCHEDULING_S: Final = 10.0
"""How long a pod may be unschedulable while its volume is created or the cache of the scheduler is outdated."""
_CRASHES: Final = "CrashLoopBackOff"
_CRASHED_S: Final = 60.0
"""How long a container that failed repeatedly must run before it counts as running."""


def _trouble(status: Json, now_s: float) -> tuple[str, str]:
    """Return why a pod does not run, as reason and message: it is unschedulable, cannot start, or crashes.

    The reason stays the same as long as the cause does, even while the container restarts.
    """
    scheduled = condition_of(status, "PodScheduled")
    if scheduled.get("status") == "False":
        if _age_s(scheduled.get("lastTransitionTime"), now_s) < _SCHEDULING_S:
            return "", ""
        return scheduled.get("reason", "Unschedulable"), scheduled.get("message", "")
    if status.get("phase") == "Failed":
        return status.get("reason") or "Failed", status.get("message", "")
    container = _broker(status)
    if not container or container.get("ready"):
        return "", ""
    state = container.get("state") or {}
    waiting = state.get("waiting") or {}
    if waiting.get("reason", "") not in {*HARMLESS, _CRASHES}:
        return _IMAGE.get(waiting["reason"], waiting["reason"]), waiting.get("message", "")
    last = state.get("terminated") or (container.get("lastState") or {}).get("terminated") or {}
    if last.get("reason") == "OOMKilled":
        return "OOMKilled", _end_of(last)
    if waiting.get("reason") == _CRASHES or (last.get("exitCode") and _is_crashing(state, container, now_s)):
        return _CRASHES, _end_of(last) if last else waiting.get("message", "")
    return "", ""


def _is_crashing(state: Json, container: Json, now_s: float) -> bool:
    """Return whether a container has just terminated, or terminated repeatedly and has not run for long since."""
    started_s = _age_s((state.get("running") or {}).get("startedAt"), now_s)
    return "terminated" in state or ((container.get("restartCount") or 0) >= 2 and started_s < _CRASHED_S)


def _end_of(terminated: Json) -> str:
    said = f": {terminated['message'].strip()}" if terminated.get("message") else ""
    return f"{terminated.get('reason', 'Error')}, exit status {terminated.get('exitCode')}{said}"


def _broker(status: Json) -> Json:
    containers: list[Json] = status.get("containerStatuses") or []
    return next((container for container in containers if container.get("name") == names.CONTAINER), {})


def _container(pod_spec: Json) -> Json:
    containers: list[Json] = pod_spec.get("containers") or []
    return next((container for container in containers if container["name"] == names.CONTAINER), {})


def _image(pod_spec: Json) -> str:
    return str(_container(pod_spec).get("image", ""))


def _has_port(pod_spec: Json, name: str) -> bool:
    return any(port.get("name") == name for port in _container(pod_spec).get("ports") or ())


def _foreign_budgets(found: Objects) -> Iterator[Budget]:
    """Yield the budgets of others that cover a pod of the cluster."""
    labels = [
        item["metadata"].get("labels") or {}
        for (kind, _), item in found.by_name.items()
        if kind == "Pod" and _is_broker(item)
    ]
    for item in found.budgets:
        if any(selects(item["spec"].get("selector"), one) for one in labels):
            allowed = (item.get("status") or {}).get("disruptionsAllowed") or 0
            yield Budget(item["metadata"]["name"], allowed)


def _stateful_set(item: Json | None) -> StatefulSet | None:
    if item is None:
        return None
    metadata, status = item["metadata"], item.get("status") or {}
    annotations = metadata.get("annotations") or {}
    return StatefulSet(
        replicas=int(item["spec"].get("replicas", 1)),
        revision=status.get("updateRevision", ""),
        up_to_date=status.get("observedGeneration", 0) >= metadata.get("generation", 0),
        image=_image(item["spec"]["template"]["spec"]),
        uid=metadata["uid"],
        hibernated_members=_count(annotations.get(names.HIBERNATED_MEMBERS)),
        chosen_image=annotations.get(names.IMAGE, ""),
        update=annotations.get(names.UPDATE, ""),
        spec_digest=annotations.get(names.SPEC_DIGEST, ""),
        template_digest=annotations.get(names.TEMPLATE_DIGEST, ""),
    )


def _count(text: str | None) -> int:
    """Parse the number in an annotation; 0 if it is not a number."""
    return int(text) if text and text.isdecimal() else 0


def _passwords(secret: Json | None, now_s: float) -> Passwords | None:
    data = _words(secret)
    if secret is None or not data.get("password"):
        return None
    annotations = secret["metadata"].get("annotations") or {}
    rotated_at = annotations.get(names.ROTATED_AT, "")
    return Passwords(
        current=data["password"],
        former=data.get("former-password") or None,
        rotation=_count(annotations.get(names.ROTATION)),
        rotated_s_ago=_age_s(rotated_at, now_s),
        rotated_at=rotated_at,
        following=data.get("next-password") or None,
    )


def _authorities(secret: Json | None, now_s: float) -> Authorities | None:
    if secret is None:
        return None
    annotations = secret["metadata"].get("annotations") or {}
    changed_at = annotations.get(names.ROTATED_AT, "")
    rotation = _count(annotations.get(names.ROTATION))
    return read_authorities(_data(secret), rotation, changed_at, _age_s(changed_at, now_s))


def kept_in(secret: Json | None, kind: str, now_s: float) -> dict[str, Kept]:
    """Return what the Secret keeps about users, queues or schedules."""
    try:
        entries = json.loads(_data(secret).get(KEPT_KEY) or "{}").get(kind) or {}
    except ValueError:
        return {}
    return {
        name: Kept(
            entry["uid"],
            entry["retain"],
            entry.get("rules", ""),
            entry.get("removedAt", ""),
            _age_s(entry.get("removedAt"), now_s),
            entry.get("settings", False),
            entry.get("ordered", False),
            entry.get("dropsJobs", False),
        )
        for name, entry in entries.items()
    }


def _data(secret: Json | None) -> dict[str, str]:
    """Decode the entries of a Secret; entries that are not text are left out."""
    entries = ((secret or {}).get("data") or {}).items()
    return {key: text for key, value in entries if (text := _text(value)) is not None}


def _text(value: str) -> str | None:
    try:
        return base64.b64decode(value).decode()
    except ValueError:
        return None


def _words(secret: Json | None) -> dict[str, str]:
    """Decode the entries of a Secret with passwords, without the line end that a file adds."""
    return {key: text.rstrip("\n") for key, text in _data(secret).items()}


def _keys(passwords: Passwords | None, of_clients: Passwords | None, own: str | None) -> tuple[str, ...]:
    """Return all passwords that a broker may accept, the most likely first."""
    kept = (passwords.current, passwords.following, passwords.former) if passwords else ()
    clients = of_clients.current if of_clients else None
    return tuple(dict.fromkeys(word for word in (*kept, clients, own) if word))


def _quota(events: tuple[Json, ...], now_s: float) -> str:
    def at_s(event: Json) -> float:
        return _age_s(event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp"), now_s)

    recent = [event for event in events if at_s(event) < QUOTA_S]
    return str(min(recent, key=at_s).get("message", "")) if recent else ""


def _age_s(timestamp: str | None, now_s: float) -> float:
    """Return the seconds since a timestamp; 0 if it is in the future, because clocks differ."""
    if not timestamp:
        return 0.0
    try:
        return max(0.0, now_s - datetime.fromisoformat(timestamp).timestamp())
    except ValueError:
        return 0.0
