"""How everything that belongs to a cluster is called."""

from __future__ import annotations

from typing import Final

GROUP: Final = "disque.dev"
VERSION: Final = "v1alpha1"
KIND: Final = "DisqueCluster"
PLURAL: Final = "disqueclusters"
API_VERSION: Final = f"{GROUP}/{VERSION}"
MANAGER: Final = "disque-operator"
"""The field manager of all that is applied, and `app.kubernetes.io/managed-by`."""

CLIENT_PORT: Final = 7711
BUS_PORT: Final = 17711
HTTP_PORT: Final = 9711

CONTAINER: Final = "broker"
DATA: Final = "data"
"""The volume, and the volume claim template: claims are called `data-<pod>`."""

# Annotations that people set on the resource
ALLOW_JOB_LOSS: Final = f"{GROUP}/allow-job-loss"
"""`true`: the consent that `drain.onTimeout: Force` needs."""
RESTART_AT: Final = f"{GROUP}/restart-at"
"""Any new text: all pods are restarted, one at a time."""

# Annotation that people set on a pod
DRAIN: Final = f"{GROUP}/drain"
"""`true`: the pod's node hands its jobs over and takes no new ones, until the pod is replaced or the annotation goes.
One at a time, and refused as a shrink would be. The pod that replaces it has no such annotation and serves again."""

# Annotations and labels of ours
ROTATION: Final = f"{GROUP}/rotation"
"""On the Secret with the password: the `auth.rotation` that its password was made for,"""
ROTATED_AT: Final = f"{GROUP}/rotated-at"
"""and when it took the place of the former one: a time as Kubernetes writes it, `2026-01-31T12:00:00Z`."""
CLUSTER_LABEL: Final = f"{GROUP}/cluster"
"""On all children: the name of the resource."""
DRAINED: Final = f"{GROUP}/drained"
"""On a volume claim: the ID of the node that handed all its jobs over before its pod went. Others may hold jobs."""
HIBERNATED_MEMBERS: Final = f"{GROUP}/hibernated-members"
"""On the StatefulSet of a cluster that hibernates: how many members it had."""
RESTART_HASH: Final = f"{GROUP}/restart-hash"
"""On the pod template: changes when something changed that needs a restart."""


APPLIED: Final = f"{GROUP}/applied"
"""On all children: a digest of the manifest that was applied last. It shows what is not asked for any more."""
OPERATOR_LABELS: Final = {"app.kubernetes.io/name": MANAGER}
"""By which the NetworkPolicy knows the operator's pods."""


def labels(cluster: str) -> dict[str, str]:
    """The labels of all children."""
    return {
        "app.kubernetes.io/name": "disque",
        "app.kubernetes.io/instance": cluster,
        "app.kubernetes.io/component": "broker",
        "app.kubernetes.io/managed-by": MANAGER,
        CLUSTER_LABEL: cluster,
    }


def selector(cluster: str) -> dict[str, str]:
    """The labels by which pods are selected; they never change."""
    return {"app.kubernetes.io/name": "disque", CLUSTER_LABEL: cluster}


def stateful_set(cluster: str) -> str:
    """The StatefulSet."""
    return cluster


def client_service(cluster: str) -> str:
    """The service that clients use: pods that are ready."""
    return cluster


def members_service(cluster: str) -> str:
    """The headless service that gives each pod its name; pods that are not ready as well."""
    return f"{cluster}-members"


def config_map(cluster: str) -> str:
    """The configuration file `disque.conf`."""
    return f"{cluster}-config"


def auth_secret(cluster: str) -> str:
    """The generated password, and the configuration file that has it."""
    return f"{cluster}-auth"


def disruption_budget(cluster: str) -> str:
    """The PodDisruptionBudget."""
    return cluster


def network_policy(cluster: str) -> str:
    """The NetworkPolicy."""
    return cluster


def service_account(cluster: str) -> str:
    """The account of the pods, which may do nothing."""
    return cluster


def pod(cluster: str, ordinal: int) -> str:
    """A pod."""
    return f"{cluster}-{ordinal}"


def volume_claim(cluster: str, ordinal: int) -> str:
    """The claim of a pod."""
    return f"{DATA}-{cluster}-{ordinal}"


def pod_host(cluster: str, namespace: str, ordinal: int) -> str:
    """The stable name under which a pod is reached and announced to the others and to clients."""
    return f"{pod(cluster, ordinal)}.{members_service(cluster)}.{namespace}.svc"


def cluster_name(cluster: str, namespace: str) -> str:
    """The `cluster-name` directive: nodes that got another cluster's address refuse each other."""
    return f"{namespace}/{cluster}"


def ordinal(pod_name: str) -> int:
    """The number at the end of a pod's name."""
    return int(pod_name.rpartition("-")[2])
