"""A cluster of brokers in a namespace, and the resource that asks for it.

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
SETTLE_S: Final = 180
FORM_S: Final = 60
SMALL: Final[Json] = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}}


class Members:
    """Pods of brokers behind a service; whoever made them."""

    port = 7711

    def __init__(self, kube: Kube, namespace: str, name: str) -> None:
        self.kube = kube
        self.namespace = namespace
        self.name = name

    @property
    def service(self) -> str:
        """The host name of the service that clients use."""
        return f"{self.name}.{self.namespace}.svc"

    @property
    def auth_secret(self) -> str:
        """The Secret that holds the password, if there is one."""
        return f"{self.name}-auth"

    @property
    def labels(self) -> str:
        """A selector of the pods."""
        return f"app.kubernetes.io/name=disque,app.kubernetes.io/instance={self.name}"

    @property
    def password(self) -> str | None:
        """The password of now."""
        secret = self.kube.find("Secret", self.auth_secret, self.namespace)
        return (
            base64.b64decode(secret["data"]["password"]).decode() if secret and "password" in secret["data"] else None
        )

    def pods(self) -> list[Json]:
        """The pods, by ordinal."""
        return sorted(
            self.kube.all("Pod", self.namespace, self.labels), key=lambda pod: _ordinal(pod["metadata"]["name"])
        )

    def pod_names(self) -> list[str]:
        """Their names."""
        return [pod["metadata"]["name"] for pod in self.pods()]

    def uid(self, ordinal: int) -> str:
        """The UID of a pod, which tells it from another one of the name."""
        return str(self.kube.get("Pod", self.pod(ordinal), self.namespace)["metadata"]["uid"])

    def pod(self, ordinal: int) -> str:
        """The name of a pod."""
        return f"{self.name}-{ordinal}"

    def machine(self, ordinal: int) -> str:
        """The machine a pod runs on."""
        return str(self.kube.get("Pod", self.pod(ordinal), self.namespace)["spec"]["nodeName"])

    def broker(self, ordinal: int) -> Broker:
        """A connection to one of the brokers."""
        return Broker(self.kube, self.namespace, self.pod(ordinal), self.password)

    @contextlib.contextmanager
    def brokers(self) -> Iterator[list[Broker]]:
        """Connections to all brokers."""
        with connected(self.kube, self.namespace, self.pod_names(), self.password) as brokers:
            yield brokers

    def ids(self) -> dict[str, str]:
        """The node ID of each pod."""
        with self.brokers() as brokers:
            return {broker.pod: broker.id for broker in brokers}

    def is_formed(self, count: int) -> bool:
        """Whether so many brokers list each other, connected, and nobody else."""
        with self.brokers() as brokers:
            views = {broker.id: broker.view() for broker in brokers}
        sound = all(not flags - {"myself", "noflags"} for view in views.values() for flags in view.values())
        return len(views) == count and sound and all(view.keys() == views.keys() for view in views.values())

    def wait_formed(self, count: int, within_s: float = FORM_S) -> None:
        """Until they do."""
        poll(lambda: self.is_formed(count), f"{count} brokers list each other and nobody else", within_s)

    def wait_pods(self, condition: Callable[[list[Json]], T | None], what: str, within_s: float = CREATE_S) -> T:
        """Until the pods are so."""
        return self.kube.wait("Pod", self.namespace, condition, what, within_s=within_s, labels=self.labels)

    def wait_replaced(self, ordinal: int, former_uid: str, within_s: float = CREATE_S) -> None:
        """Until another pod of the name is ready."""
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
    """A cluster that the operator makes from a `DisqueCluster`."""

    def __init__(self, kube: Kube, namespace: str, name: str, image: str) -> None:
        super().__init__(kube, namespace, name)
        self._image = image

    def manifest(self, **spec: Any) -> Json:
        """The resource: small pods and volumes, roll-outs without long pauses."""
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
        """Ask for it; returns when, by the monotonic clock."""
        begin_s = time.monotonic()
        self.kube.create(self.manifest(**spec))
        return begin_s

    def patch(self, **spec: Any) -> float:
        """Change fields of the spec; returns when, by the monotonic clock."""
        begin_s = time.monotonic()
        self.kube.patch("DisqueCluster", self.name, self.namespace, {"spec": spec})
        return begin_s

    def annotate(self, **annotations: str | None) -> None:
        """Set annotations of ours, without the prefix, `_` for `-`."""
        named = {f"disque.dev/{name.replace('_', '-')}": value for name, value in annotations.items()}
        self.kube.patch("DisqueCluster", self.name, self.namespace, {"metadata": {"annotations": named}})

    def delete(self) -> None:
        """Ask for it to go."""
        self.kube.delete("DisqueCluster", self.name, self.namespace)

    @property
    def resource(self) -> Json:
        """The resource as it is."""
        return self.kube.get("DisqueCluster", self.name, self.namespace)

    @property
    def status(self) -> Json:
        """What the operator says of it."""
        status: Json = self.resource.get("status", {})
        return status

    def wait(self, condition: Callable[[Json], T | None], what: str, within_s: float = SETTLE_S) -> T:
        """Until the status of the current generation is so; what the condition returns."""

        def look(resources: list[Json]) -> T | None:
            for resource in resources:
                status = resource.get("status", {})
                if status.get("observedGeneration") == resource["metadata"]["generation"]:
                    return condition(status)
            return None

        return self.kube.wait(
            "DisqueCluster", self.namespace, look, f"{self.name}: {what}", within_s=within_s, name=self.name
        )

    def wait_phase(self, *phases: str, within_s: float = SETTLE_S) -> None:
        """Until the phase is one of these."""
        self.wait(lambda status: status.get("phase") in phases, f"phase {' or '.join(phases)}", within_s)

    def wait_running(self, replicas: int, within_s: float = SETTLE_S) -> None:
        """Until it runs with so many members, and they agree on it."""
        self.wait(lambda status: is_running(status, replicas), f"runs with {replicas} members", within_s)
        self.wait_formed(replicas)

    def wait_condition(self, kind: str, value: str, within_s: float = SETTLE_S, reason: str = "") -> Json:
        """Until a condition has this value, and this reason if one is given; the condition."""

        def look(status: Json) -> Json | None:
            found = condition(status, kind)
            return found if found.get("status") == value and reason in {"", found.get("reason")} else None

        return self.wait(look, f"condition {kind} is {value} {reason}", within_s)

    def events(self) -> list[Json]:
        """What the operator told of it, oldest first."""
        mine = [
            event
            for event in self.kube.all("Event", self.namespace)
            if event["involvedObject"].get("kind") == "DisqueCluster" and event["involvedObject"]["name"] == self.name
        ]
        return sorted(mine, key=lambda event: str(event.get("eventTime") or event.get("lastTimestamp")))

    def claims(self) -> set[str]:
        """The names of its volume claims that are not about to go."""
        claims = self.kube.all("PersistentVolumeClaim", self.namespace, f"disque.dev/cluster={self.name}")
        return {claim["metadata"]["name"] for claim in claims if "deletionTimestamp" not in claim["metadata"]}


def is_running(status: Json, replicas: int) -> bool:
    """Whether all is as it should be with so many members."""
    return (
        status.get("phase") == "Running"
        and status.get("replicas") == status.get("readyReplicas") == replicas
        and condition(status, "Ready").get("status") == "True"
        and condition(status, "ClusterFormed").get("status") == "True"
    )


def condition(status: Json, kind: str) -> Json:
    """A condition of a status; empty when there is none."""
    return next((entry for entry in status.get("conditions") or () if entry["type"] == kind), {})


def is_ready(pod: Json) -> bool:
    """Whether a pod is ready and not about to go."""
    return "deletionTimestamp" not in pod["metadata"] and condition(pod["status"], "Ready").get("status") == "True"


def _ordinal(pod: str) -> int:
    return int(pod.rpartition("-")[2])
