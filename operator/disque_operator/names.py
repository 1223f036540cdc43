"""Names of everything that belongs to a cluster: objects, annotations, labels, ports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

GROUP: Final = "disque.dev"
VERSION: Final = "v1alpha1"
"""The API version that the operator uses and in which objects are stored."""
SERVED: Final = (VERSION, "v1beta1")
"""All API versions. They have the same fields, so the API server converts objects by changing `apiVersion`."""
KIND: Final = "DisqueCluster"
PLURAL: Final = "disqueclusters"
USER_KIND: Final = "DisqueUser"
USER_PLURAL: Final = "disqueusers"
QUEUE_KIND: Final = "DisqueQueue"
QUEUE_PLURAL: Final = "disquequeues"
SCHEDULE_KIND: Final = "DisqueSchedule"
SCHEDULE_PLURAL: Final = "disqueschedules"
BACKUP_KIND: Final = "DisqueBackup"
BACKUP_PLURAL: Final = "disquebackups"
DECLARED: Final = (USER_KIND, QUEUE_KIND, SCHEDULE_KIND, BACKUP_KIND)
"""The kinds of resources that name their cluster in `spec.clusterRef`."""
API_VERSION: Final = f"{GROUP}/{VERSION}"
MANAGER: Final = "disque-operator"
"""The field manager of applied objects, and the value of `app.kubernetes.io/managed-by`."""

CLIENT_PORT: Final = 7711
TLS_PORT: Final = 7712
EXTERNAL_PORT: Final = 7713
EXTERNAL_TLS_PORT: Final = 7714
BUS_PORT: Final = 17711
HTTP_PORT: Final = 9711

_LONGEST_SERVICE: Final = 63

CLUSTER_DOMAIN: Final = "cluster.local"
"""The domain of most Kubernetes clusters. Certificates also have the full names; nothing else needs them."""
CONTAINER: Final = "broker"
TLS_PORT_NAME: Final = "client-tls"
"""The port of the container for clients with TLS. A pod without it serves only clients without TLS."""
EXTERNAL_PORT_NAME: Final = "external"
EXTERNAL_TLS_PORT_NAME: Final = "external-tls"
"""The ports of the container for clients outside of Kubernetes, which their services select by name."""
POD_LABEL: Final = "statefulset.kubernetes.io/pod-name"
"""On pods of StatefulSets: the name of the pod."""
DATA: Final = "data"
"""The volume and the volume claim template; claims are named `data-<pod>`."""

# Annotations that people set on the resource
ALLOW_JOB_LOSS: Final = f"{GROUP}/allow-job-loss"
"""`true`: confirms that `drain.onTimeout: Force` may drop jobs."""
RESTART_AT: Final = f"{GROUP}/restart-at"
"""Changing the value restarts all pods, one at a time."""
OPERATOR: Final = f"{GROUP}/operator"
"""The operator that may act on the cluster, as the namespace and name of its Lease."""

# Annotation that people set on a pod
DRAIN: Final = f"{GROUP}/drain"
"""`true`: the broker transfers its jobs and accepts no new ones, until the pod is replaced or the annotation removed.
One pod at a time, and refused like a scale-down. A replacement pod does not have the annotation, so it serves again."""

# Annotations and labels that the operator sets
ROTATION: Final = f"{GROUP}/rotation"
"""On the Secrets with the password: the value of `auth.rotation` for which the password was generated."""
ROTATED_AT: Final = f"{GROUP}/rotated-at"
"""On the Secrets with the password: when the password replaced the previous one, for example `2026-01-31T12:00:00Z`."""
CLUSTER_LABEL: Final = f"{GROUP}/cluster"
"""On all objects of a cluster: the name of the resource."""
DRAINED: Final = f"{GROUP}/drained"
"""On a volume claim: the node ID that transferred all jobs before its pod was removed. Other claims may hold jobs."""
HIBERNATED_MEMBERS: Final = f"{GROUP}/hibernated-members"
"""On the StatefulSet of a hibernating cluster: how many members it had."""
RESTART_HASH: Final = f"{GROUP}/restart-hash"
"""On the pod template: changes when a setting changes that needs a restart."""
IMAGE: Final = f"{GROUP}/image"
"""On the StatefulSet: the image that was chosen for the cluster. It stays when the operator gets another default."""
UPDATE: Final = f"{GROUP}/update"
"""On the StatefulSet: `waiting` or `running` while pods are replaced because the operator changed, not the spec."""
SPEC_DIGEST: Final = f"{GROUP}/spec"
"""On the StatefulSet: a digest of the spec from which its pod template was made."""
TEMPLATE_DIGEST: Final = f"{GROUP}/template"
"""On the StatefulSet: a digest of the pod template as the operator made it."""
APPLIED: Final = f"{GROUP}/applied"
"""On all objects of a cluster: a digest of the manifest that was applied last. It reveals removed fields."""
USER_LABEL: Final = f"{GROUP}/user"
"""On the Secret with the generated password of a user: the name of its DisqueUser."""
RUN_LABEL: Final = f"{GROUP}/run"
"""On a Job of the operator and on its pods: what it does, such as RUN_SCHEDULED."""
RUN_CONTAINER: Final = "disque-backup"
"""The container of these pods."""
RUN_SCHEDULED: Final = "scheduled-backup"
RUN_BACKUP: Final = "backup"
RUN_FIND: Final = "find-backup"
RUN_RESTORE: Final = "restore"
BACKUP_NAME: Final = f"{GROUP}/backup"
"""On a Job that restores: the name of the backup."""
CLAIM_UID: Final = f"{GROUP}/claim-uid"
"""On a Job that restores: the UID of the volume claim."""
MEMBERS: Final = f"{GROUP}/members"
"""On a Job of a new cluster that is made of a backup: how many members it gets."""
ZONE_LABEL: Final = "topology.kubernetes.io/zone"
"""On Kubernetes nodes, and since Kubernetes 1.35 on pods: the zone."""
OPERATOR_LABELS: Final = {"app.kubernetes.io/name": MANAGER}
"""Labels of the operator's pods, for the NetworkPolicy."""


def labels(cluster: str) -> dict[str, str]:
    """Return the labels of all objects of a cluster."""
    return {
        "app.kubernetes.io/name": "disque",
        "app.kubernetes.io/instance": cluster,
        "app.kubernetes.io/component": "broker",
        "app.kubernetes.io/managed-by": MANAGER,
        CLUSTER_LABEL: cluster,
    }


def selector(cluster: str) -> dict[str, str]:
    """Return the labels that select the pods of a cluster. They never change."""
    return {"app.kubernetes.io/name": "disque", CLUSTER_LABEL: cluster}


def run_labels(cluster: str, run: str) -> dict[str, str]:
    """Return the labels of a Job and of its pods. They differ from those of brokers, which `selector` selects."""
    return labels(cluster) | {
        "app.kubernetes.io/name": "disque-backup",
        "app.kubernetes.io/component": run,
        RUN_LABEL: run,
    }


def runs_selector(cluster: str) -> dict[str, str]:
    """Return the labels that select the pods that connect to brokers for backups."""
    return {"app.kubernetes.io/name": "disque-backup", CLUSTER_LABEL: cluster}


def cron_job(cluster: str) -> str:
    """Return the name of the CronJob that makes backups."""
    return f"{cluster}-backup"


def find_job(cluster: str) -> str:
    """Return the name of the Job that finds the backup of which a new cluster is made."""
    return f"{cluster}-find"


def restore_job(cluster: str, ordinal: int) -> str:
    """Return the name of the Job that writes the files of a member of a new cluster."""
    return f"{cluster}-restore-{ordinal}"


def backup_job(backup: str) -> str:
    """Return the name of the Job of a DisqueBackup."""
    return f"{backup}-disque-backup"


def backups_of(cluster: str, namespace: str) -> str:
    """Return the name of a cluster in its backups. A namespace has no dot, so it is unique."""
    return f"{namespace}.{cluster}"


def stateful_set(cluster: str) -> str:
    """Return the name of the StatefulSet."""
    return cluster


def client_service(cluster: str) -> str:
    """Return the name of the service for clients, which selects ready pods."""
    return cluster


def client_host(cluster: str, namespace: str) -> str:
    """Return the host name of the service for clients."""
    return f"{client_service(cluster)}.{namespace}.svc"


def members_service(cluster: str) -> str:
    """Return the name of the headless service that gives each pod its host name, ready or not."""
    return f"{cluster}-members"


def external_service(cluster: str, ordinal: int) -> str:
    """Return the name of the service by which clients outside of Kubernetes reach a member.

    It has at most 63 characters. A name of a cluster that leaves no room is shortened, with a digest of it.
    """
    rest = f"-{ordinal}-external"
    room = _LONGEST_SERVICE - len(rest)
    if len(cluster) > room:
        cluster = f"{cluster[: room - 9]}-{sha256(cluster.encode()).hexdigest()[:8]}"
    return f"{cluster}{rest}"


def external_ordinal(cluster: str, name: str) -> int | None:
    """Return the number of the pod of such a service; None for another name."""
    match = re.fullmatch(r".+-(0|[1-9]\d*)-external", name)
    return int(match[1]) if match and external_service(cluster, int(match[1])) == name else None


def config_map(cluster: str) -> str:
    """Return the name of the ConfigMap with `disque.conf`."""
    return f"{cluster}-config"


def auth_secret(cluster: str) -> str:
    """Return the name of the brokers' Secret: all passwords, and the configuration file that contains them."""
    return f"{cluster}-auth"


def client_secret(cluster: str) -> str:
    """Return the name of the Secret that clients read: how to connect as the user `default`."""
    return f"{cluster}-default-user"


def tls_secret(cluster: str) -> str:
    """Return the name of the Secret with the certificate of the brokers, if it is not a Secret of the user's."""
    return f"{cluster}-tls"


def bus_secret(cluster: str) -> str:
    """Return the name of the Secret with the cluster secrets."""
    return f"{cluster}-bus"


def authority_secret(cluster: str) -> str:
    """Return the name of the Secret with the authority that signs the certificate."""
    return f"{cluster}-authority"


def ca_config_map(cluster: str) -> str:
    """Return the name of the ConfigMap with `ca.crt`, by which clients verify brokers."""
    return f"{cluster}-ca"


def user_secret(user: str) -> str:
    """Return the name of the Secret with the generated password of a DisqueUser."""
    return f"{user}-disque-user"


def cluster_of(resource: Mapping[str, Any]) -> str:
    """Return the cluster that a resource of the kinds DECLARED names; empty if it names none."""
    return str(((resource.get("spec") or {}).get("clusterRef") or {}).get("name") or "")


def queue_of(resource: Mapping[str, Any]) -> str:
    """Return the queue of a DisqueQueue."""
    return str((resource.get("spec") or {}).get("queueName") or resource["metadata"]["name"])


def schedule_of(resource: Mapping[str, Any]) -> str:
    """Return the name of the schedule of a DisqueSchedule."""
    return str((resource.get("spec") or {}).get("scheduleName") or resource["metadata"]["name"])


def disruption_budget(cluster: str) -> str:
    """Return the name of the PodDisruptionBudget."""
    return cluster


def pod_monitor(cluster: str) -> str:
    """Return the name of the PodMonitor."""
    return cluster


def network_policy(cluster: str) -> str:
    """Return the name of the NetworkPolicy."""
    return cluster


def service_account(cluster: str) -> str:
    """Return the name of the ServiceAccount of the pods, which has no rights."""
    return cluster


def pod(cluster: str, ordinal: int) -> str:
    """Return the name of a pod."""
    return f"{cluster}-{ordinal}"


def volume_claim(cluster: str, ordinal: int) -> str:
    """Return the name of the volume claim of a pod."""
    return f"{DATA}-{cluster}-{ordinal}"


def pod_host(cluster: str, namespace: str, ordinal: int) -> str:
    """Return the stable host name of a pod, which it announces to other members and to clients."""
    return f"{pod(cluster, ordinal)}.{members_service(cluster)}.{namespace}.svc"


def cluster_name(cluster: str, namespace: str) -> str:
    """Return the directive `cluster-name`, by which brokers of different clusters reject each other."""
    return f"{namespace}/{cluster}"


def ordinal(pod_name: str) -> int:
    """Return the number at the end of the name of a pod."""
    return int(pod_name.rpartition("-")[2])


def is_pod(cluster: str, name: str) -> bool:
    """Return whether a pod belongs to the StatefulSet, by its number."""
    return re.fullmatch(re.escape(cluster) + r"-(0|[1-9]\d*)", name) is not None
