"""A cluster of brokers in a namespace, and the resource that describes it.

cluster = DisqueCluster(kube, namespace, "shop", image)
cluster.create(replicas=3)
cluster.wait_running(3)
cluster.patch(replicas=5)
"""

from __future__ import annotations

import base64
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from e2e.support.brokers import Broker, connected, poll
from e2e.support.kube import Json, Kube

T = TypeVar("T")

API_VERSION: Final = "disque.dev/v1alpha1"
CREATE_S: Final = 120
SETTLE_S: Final = 400
"""A scheduler that saw a claim before its volume, as one may after an outage of the API server, tries again only after
five minutes."""
FORM_S: Final = 60
SMALL: Final[Json] = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}}


class Members:
    """Pods of brokers behind a Service, created by the operator or by plain manifests."""

    port = 7711

    def __init__(self, kube: Kube, namespace: str, name: str) -> None:
        self.kube = kube
        self.namespace = namespace
        self.name = name

    @property
    def service(self) -> str:
        """Host name of the Service for clients."""
        return f"{self.name}.{self.namespace}.svc"

    @property
    def client_secret(self) -> str:
        """Name of the Secret that holds the password for clients, if there is one."""
        return f"{self.name}-auth"

    @property
    def labels(self) -> str:
        """Label selector of the pods."""
        return f"app.kubernetes.io/name=disque,app.kubernetes.io/instance={self.name}"

    @property
    def password(self) -> str | None:
        """The current password; None if there is none."""
        secret = self.kube.find("Secret", self.client_secret, self.namespace)
        return (
            base64.b64decode(secret["data"]["password"]).decode() if secret and "password" in secret["data"] else None
        )

    def pods(self) -> list[Json]:
        """Return the pods, sorted by ordinal."""
        return sorted(
            self.kube.all("Pod", self.namespace, self.labels), key=lambda pod: _ordinal(pod["metadata"]["name"])
        )

    def pod_names(self) -> list[str]:
        """Return the names of the pods, sorted by ordinal."""
        return [pod["metadata"]["name"] for pod in self.pods()]

    def uid(self, ordinal: int) -> str:
        """Return the UID of a pod, which changes when the pod is replaced."""
        return str(self.kube.get("Pod", self.pod(ordinal), self.namespace)["metadata"]["uid"])

    def pod(self, ordinal: int) -> str:
        """Return the name of a pod."""
        return f"{self.name}-{ordinal}"

    def kubernetes_node(self, ordinal: int) -> str:
        """Return the Kubernetes node that a pod runs on."""
        return str(self.kube.get("Pod", self.pod(ordinal), self.namespace)["spec"]["nodeName"])

    def broker(self, ordinal: int) -> Broker:
        """Return a connection to one of the brokers."""
        return Broker(self.kube, self.namespace, self.pod(ordinal), self.password)

    @contextlib.contextmanager
    def brokers(self) -> Iterator[list[Broker]]:
        """Open connections to all brokers."""
        with connected(self.kube, self.namespace, self.pod_names(), self.password) as brokers:
            yield brokers

    def ids(self) -> dict[str, str]:
        """Return the broker's node ID of each pod."""
        with self.brokers() as brokers:
            return {broker.pod: broker.id for broker in brokers}

    def is_formed(self, count: int) -> bool:
        """Return whether exactly this number of brokers list each other, all of them connected."""
        with self.brokers() as brokers:
            views = {broker.id: broker.view() for broker in brokers}
        sound = all(not flags - {"myself", "noflags"} for view in views.values() for flags in view.values())
        return len(views) == count and sound and all(view.keys() == views.keys() for view in views.values())

    def wait_formed(self, count: int, within_s: float = FORM_S) -> None:
        """Wait until exactly this number of brokers list each other."""
        poll(lambda: self.is_formed(count), f"{count} brokers list each other and no others", within_s)

    def wait_pods(self, condition: Callable[[list[Json]], T | None], what: str, within_s: float = CREATE_S) -> T:
        """Wait until the condition returns something true for the pods."""
        return self.kube.wait("Pod", self.namespace, condition, what, within_s=within_s, labels=self.labels)

    def wait_replaced(self, ordinal: int, former_uid: str, within_s: float = CREATE_S) -> None:
        """Wait until a new pod of the same name is ready."""
        name = self.pod(ordinal)
        self.wait_pods(
            lambda pods: [
                pod
                for pod in pods
                if pod["metadata"]["name"] == name and pod["metadata"]["uid"] != former_uid and is_ready(pod)
            ],
            f"a new {name} is ready",
            within_s,
        )


class DisqueCluster(Members):
    """A cluster that the operator creates from a `DisqueCluster`."""

    def __init__(self, kube: Kube, namespace: str, name: str, image: str) -> None:
        super().__init__(kube, namespace, name)
        self._image = image

    @property
    def client_secret(self) -> str:
        """Name of the Secret that holds the password for clients, if there is one."""
        return f"{self.name}-default-user"

    def manifest(self, **spec: Any) -> Json:
        """Return the resource, with small pods and volumes and short pauses during rollouts."""
        defaults: Json = {
            "image": self._image,
            "imagePullPolicy": "IfNotPresent",
            "resources": SMALL,
            "storage": {"size": "64Mi"},
            "upgrade": {"soakSeconds": 2},
        }
        return {
            "apiVersion": API_VERSION,
            "kind": "DisqueCluster",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": defaults | spec,
        }

    def create(self, **spec: Any) -> float:
        """Create the resource and return the monotonic time before the request."""
        begin_s = time.monotonic()
        self.kube.create(self.manifest(**spec))
        return begin_s

    def patch(self, **spec: Any) -> float:
        """Change fields of the spec and return the monotonic time before the request."""
        begin_s = time.monotonic()
        self.kube.patch("DisqueCluster", self.name, self.namespace, {"spec": spec})
        return begin_s

    def annotate(self, **annotations: str | None) -> None:
        """Set `disque.dev/` annotations; the arguments are their names without the prefix, with `_` for `-`."""
        named = {f"disque.dev/{name.replace('_', '-')}": value for name, value in annotations.items()}
        self.kube.patch("DisqueCluster", self.name, self.namespace, {"metadata": {"annotations": named}})

    def delete(self) -> None:
        """Delete the resource."""
        self.kube.delete("DisqueCluster", self.name, self.namespace)

    @property
    def resource(self) -> Json:
        """The current resource."""
        return self.kube.get("DisqueCluster", self.name, self.namespace)

    @property
    def status(self) -> Json:
        """The current status."""
        status: Json = self.resource.get("status", {})
        return status

    def wait(self, condition: Callable[[Json], T | None], what: str, within_s: float = SETTLE_S) -> T:
        """Wait until the condition returns something true for the status of the current generation; return that."""

        def check(resources: list[Json]) -> T | None:
            for resource in resources:
                status = resource.get("status", {})
                if status.get("observedGeneration") == resource["metadata"]["generation"]:
                    return condition(status)
            return None

        return self.kube.wait(
            "DisqueCluster", self.namespace, check, f"{self.name}: {what}", within_s=within_s, name=self.name
        )

    def wait_phase(self, *phases: str, within_s: float = SETTLE_S) -> None:
        """Wait until the phase is one of these."""
        self.wait(lambda status: status.get("phase") in phases, f"phase {' or '.join(phases)}", within_s)

    def wait_running(self, replicas: int, within_s: float = SETTLE_S) -> None:
        """Wait until the cluster runs with this number of members, and the members agree."""
        self.wait(lambda status: is_running(status, replicas), f"runs with {replicas} members", within_s)
        self.wait_formed(replicas)

    def wait_condition(self, kind: str, value: str, within_s: float = SETTLE_S, reason: str = "") -> Json:
        """Wait until a condition has this status, and this reason if given; return the condition."""

        def check(status: Json) -> Json | None:
            found = condition(status, kind)
            return found if found.get("status") == value and reason in {"", found.get("reason")} else None

        return self.wait(check, f"condition {kind} is {value} {reason}", within_s)

    def events(self) -> list[Json]:
        """Return the events of the resource, oldest first."""
        mine = [
            event
            for event in self.kube.all("Event", self.namespace)
            if event["involvedObject"].get("kind") == "DisqueCluster" and event["involvedObject"]["name"] == self.name
        ]
        return sorted(mine, key=lambda event: str(event.get("eventTime") or event.get("lastTimestamp")))

    def claims(self) -> set[str]:
        """Return the names of the cluster's volume claims that are not being deleted."""
        claims = self.kube.all("PersistentVolumeClaim", self.namespace, f"disque.dev/cluster={self.name}")
        return {claim["metadata"]["name"] for claim in claims if "deletionTimestamp" not in claim["metadata"]}


def is_running(status: Json, replicas: int) -> bool:
    """Return whether the cluster is Running and Ready with this number of members."""
    return (
        status.get("phase") == "Running"
        and status.get("replicas") == status.get("readyReplicas") == replicas
        and condition(status, "Ready").get("status") == "True"
        and condition(status, "ClusterFormed").get("status") == "True"
    )


def condition(status: Json, kind: str) -> Json:
    """Return a condition of a status; empty if there is none of this type."""
    return next((entry for entry in status.get("conditions") or () if entry["type"] == kind), {})


def is_ready(pod: Json) -> bool:
    """Return whether a pod is ready and not being deleted."""
    return "deletionTimestamp" not in pod["metadata"] and condition(pod["status"], "Ready").get("status") == "True"


def _ordinal(pod: str) -> int:
    return int(pod.rpartition("-")[2])
