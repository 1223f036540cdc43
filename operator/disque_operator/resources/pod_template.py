"""The pod template: one container without privileges, without writable files except its volume, without a shell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from disque_operator import names
from disque_operator.apivalues import Json, amount
from disque_operator.busmode import BusMode
from disque_operator.directives import restart_hash
from disque_operator.observed import Platform
from disque_operator.resources import encryption
from disque_operator.resources.common import AUTH_PATH, CONFIG_FILE, CONFIG_PATH, DATA_PATH
from disque_operator.resources.merging import merge
from disque_operator.resources.protected import allowed
from disque_operator.spec import Spec
from disque_operator.versions import knows

GROUP: Final = 10001
"""The group of the image, which owns the volumes."""
STOP_TIMEOUT_S: Final = 15
"""How long a deleted pod waits until it is safe to stop, in seconds, for example while another pod is replaced."""
GRACE_S: Final = 60
"""Least termination grace period, in seconds: for that wait, and for rewriting the append-only file or for transferring
the jobs. Kubernetes checks a deleted namespace again only after half of the grace period, so a longer one delays the
deletion of namespaces."""
MOST_GRACE_S: Final = 3600
REWRITE_S_PER_GIB: Final = 45
"""Seconds to rewrite the file, per GiB of the memory limit. A file of the three quarters of it that are for jobs then
needs a disk that writes 17 MiB/s, or a processor that takes ten times as long as in docs/operations/kubernetes.md."""
DRAIN_S_PER_GIB: Final = 90
"""Seconds to transfer the jobs of a broker without a volume, per GiB of the memory limit: three times what small jobs
need on a busy machine (docs/operations/kubernetes.md)."""
END_S: Final = 5
"""Seconds of the grace period that are left for ending after a drain."""
_GIB: Final = 1 << 30
SCRAPED: Final = {"prometheus.io/scrape": "true", "prometheus.io/port": str(names.HTTP_PORT)}
"""Annotations by which a Prometheus without the Prometheus Operator finds pods; the path is `/metrics`."""
SEEDS_DELAY_S: Final = 10
"""How long a new broker waits for the CLUSTER MEET of the operator before it uses its seeds, in seconds."""
UNPRIVILEGED: Final[Json] = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
"""The security context of all containers."""
START_S: Final = 600
"""How long a broker may take to answer after its start, in seconds. It answers while it loads its file."""


def pod_template(spec: Spec, image: str, bus: BusMode, platform: Platform) -> Json:
    """Return the pod template, patched by `spec.podTemplate`. The image of the spec is only one of several sources."""
    template = {
        "metadata": {
            "labels": names.labels(spec.name),
            "annotations": {names.RESTART_HASH: restart_hash(spec), **_scraped(spec)},
        },
        "spec": _pod(spec, image, bus, platform),
    }
    patched: Json = merge(template, allowed(spec))
    return patched


def _scraped(spec: Spec) -> dict[str, str]:
    scheme = encryption.http_scheme(spec)
    return SCRAPED if scheme == "HTTP" else SCRAPED | {"prometheus.io/scheme": scheme.lower()}


def _pod(spec: Spec, image: str, bus: BusMode, platform: Platform) -> Json:
    pod: Json = {
        "serviceAccountName": names.service_account(spec.name),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": grace_s(spec),
        "securityContext": security(platform),
        "containers": [_broker(spec, image, bus)],
        "volumes": _volumes(spec, bus),
        **placement(spec),
    }
    if spec.image_pull_secrets:
        pod["imagePullSecrets"] = [{"name": secret.name} for secret in spec.image_pull_secrets]
    return pod


def security(platform: Platform) -> Json:
    """Return the security context. The user is that of the image, or the one that the platform assigns."""
    context: Json = {
        "runAsNonRoot": True,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    return context if platform.assigns_ids else context | {"fsGroup": GROUP}


def grace_s(spec: Spec) -> int:
    """Return the termination grace period: it grows with the memory of the container, as the jobs to keep do.

    A broker with a volume rewrites its file in that time, one without transfers its jobs to other members. `maxmemory`
    does not count, because it changes without a restart, which another grace period would need.
    """
    given = ((spec.resources.get(kind) or {}).get("memory") for kind in ("limits", "requests"))
    memory = next(filter(None, map(amount, given)), None)
    if memory is None:
        return GRACE_S
    s_per_gib = DRAIN_S_PER_GIB if spec.storage.ephemeral else REWRITE_S_PER_GIB
    return min(max(GRACE_S, STOP_TIMEOUT_S + math.ceil(memory * s_per_gib / _GIB)), MOST_GRACE_S)


def _broker(spec: Spec, image: str, bus: BusMode) -> Json:
    external = encryption.external_ports(spec) if knows(image, "external-port") else {}
    ports = encryption.client_ports(spec) | external | {"bus": names.BUS_PORT, "http": names.HTTP_PORT}
    host = f"$(POD_NAME).{names.members_service(spec.name)}.{spec.namespace}.svc"
    container: Json = {
        "name": names.CONTAINER,
        "image": image,
        "command": ["disque-server"],
        "args": [
            *(f"{CONFIG_PATH}/{CONFIG_FILE}", "--dir", DATA_PATH, "--cluster-announce-hostname", host),
            *_seeds_delay(image),
            *_drain(spec, image),
            *(word for name, number in external.items() for word in (f"--{name}-port", str(number))),
            *encryption.arguments(spec, bus),
        ],
        "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "ports": [{"name": name, "containerPort": number, "protocol": "TCP"} for name, number in ports.items()],
        "resources": spec.resources,
        "startupProbe": _probe(spec, "/livez", every_s=1, failures=START_S, timeout_s=1),
        "livenessProbe": _probe(spec, "/livez", every_s=10, failures=6, timeout_s=5),
        "readinessProbe": _probe(spec, "/readyz", every_s=2, failures=2, timeout_s=2),
        "lifecycle": {"preStop": _get(spec, f"/stopz?timeout={STOP_TIMEOUT_S}")},
        "securityContext": UNPRIVILEGED,
        "volumeMounts": [
            {"name": names.DATA, "mountPath": DATA_PATH},
            {"name": "config", "mountPath": CONFIG_PATH, "readOnly": True},
            {"name": "auth", "mountPath": AUTH_PATH, "readOnly": True},
            *encryption.mounts(spec, bus),
        ],
    }
    if spec.image_pull_policy:
        container["imagePullPolicy"] = spec.image_pull_policy
    return container


def _get(spec: Spec, path: str) -> Json:
    """Return a request to the HTTP port. The kubelet does not verify certificates."""
    scheme = encryption.http_scheme(spec)
    request = {"path": path, "port": "http"}
    return {"httpGet": request if scheme == "HTTP" else request | {"scheme": scheme}}


def _seeds_delay(image: str) -> tuple[str, ...]:
    return ("--cluster-seeds-delay", str(SEEDS_DELAY_S)) if knows(image, "cluster-seeds-delay") else ()


def _drain(spec: Spec, image: str) -> tuple[str, ...]:
    """Return the arguments with which a broker without a volume transfers its jobs when its pod is deleted."""
    if not spec.storage.ephemeral or not knows(image, "shutdown-drain-timeout"):
        return ()
    timeout_s = grace_s(spec) - STOP_TIMEOUT_S - END_S
    return ("--shutdown-on-sigterm", "drain", "--shutdown-drain-timeout", str(timeout_s))


def _probe(spec: Spec, path: str, every_s: int, failures: int, timeout_s: int) -> Json:
    return {
        **_get(spec, path),
        "periodSeconds": every_s,
        "timeoutSeconds": timeout_s,
        "failureThreshold": failures,
    }


def _volumes(spec: Spec, bus: BusMode) -> list[Json]:
    volumes: list[Json] = [
        {"name": "config", "configMap": {"name": names.config_map(spec.name)}},
        {"name": "auth", "secret": {"secretName": names.auth_secret(spec.name)}},
        *encryption.volumes(spec, bus),
    ]
    return [*volumes, {"name": names.DATA, "emptyDir": {}}] if spec.storage.ephemeral else volumes


def placement(spec: Spec, selector: Mapping[str, str] | None = None) -> Json:
    """Return where pods run. `selector` selects the pods that are spread; default: those of the brokers."""
    spread = dict(selector or names.selector(spec.name))
    placed: Json = {
        "affinity": _prefer_different_nodes(spread) | (spec.affinity or {}),
        "topologySpreadConstraints": _spread(spec, spread),
        "tolerations": list(spec.tolerations),
        "nodeSelector": dict(spec.node_selector),
    }
    if spec.priority_class_name:
        placed["priorityClassName"] = spec.priority_class_name
    return {name: value for name, value in placed.items() if value}


def _prefer_different_nodes(selector: dict[str, str]) -> Json:
    """Return an affinity that prefers different Kubernetes nodes. A `podAntiAffinity` of the spec replaces it."""
    term = {
        "labelSelector": {"matchLabels": selector},
        "topologyKey": "kubernetes.io/hostname",
    }
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def _spread(spec: Spec, selector: dict[str, str]) -> list[Json]:
    """Return the constraints of the spec, or a spread over zones. `selector` is the default selector."""
    zones = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}
    constraints = (zones,) if spec.topology_spread_constraints is None else spec.topology_spread_constraints
    return [{"labelSelector": {"matchLabels": selector}, **constraint} for constraint in constraints]
