"""The operator: in the cluster by its plain manifests, or as a process here that a test can kill."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import yaml
from kubernetes.client.exceptions import ApiException

from e2e.support.cluster import DisqueCluster, condition
from e2e.support.kube import CLUSTER_WIDE, Json, Kube
from e2e.support.settings import ROOT

CRDS: Final = ROOT / "manifests" / "crd"
PLAIN: Final = ROOT / "manifests" / "operator"
SELECTOR: Final = "app.kubernetes.io/name=disque-operator"
START_S: Final = 90
END_S: Final = 60
LEASE_S: Final = 30
FIRST: Final = ("CustomResourceDefinition", "Namespace", "ServiceAccount", "ClusterRole", "Role")
"""Kinds that others build on, in this order."""


def documents(folder: Path) -> list[Json]:
    """The objects in the manifests of a folder, those that others build on first."""
    texts = (path.read_text() for path in sorted(folder.glob("*.yaml")))
    objects = [document for text in texts for document in yaml.safe_load_all(text) if document]
    return sorted(objects, key=lambda item: FIRST.index(item["kind"]) if item["kind"] in FIRST else len(FIRST))


def install(kube: Kube, image: str) -> Json:
    """Apply the resource definition and the operator, and wait until it runs; its Deployment. Safe to do twice."""
    for manifest in documents(CRDS):
        kube.apply(manifest)
        name = manifest["metadata"]["name"]
        kube.wait(manifest["kind"], "", _is_established, f"{name} is known", name=name, within_s=START_S)
    for manifest in documents(PLAIN):
        kube.apply(_with_image(manifest, image))
    wait_available(kube, deployment(), 1)
    return deployment()


def deployment() -> Json:
    """The Deployment of the plain manifests."""
    [found] = [item for item in documents(PLAIN) if item["kind"] == "Deployment"]
    return found


def uninstall(kube: Kube) -> None:
    """Take the operator and the resource definition away, and wait until they are gone: the next run may begin."""
    manifests = [*reversed(documents(PLAIN)), *documents(CRDS)]
    for manifest in manifests:
        with contextlib.suppress(ApiException):
            kube.delete(manifest["kind"], manifest["metadata"]["name"], manifest["metadata"].get("namespace", ""))
    for manifest in manifests:
        if manifest["kind"] in CLUSTER_WIDE:
            name = manifest["metadata"]["name"]
            kube.wait(manifest["kind"], "", lambda found: not found, f"{name} is gone", name=name, within_s=END_S)


def _is_established(definitions: list[Json]) -> bool:
    return any(condition(item.get("status", {}), "Established").get("status") == "True" for item in definitions)


def _with_image(manifest: Json, image: str) -> Json:
    if manifest["kind"] == "Deployment":
        for container in manifest["spec"]["template"]["spec"]["containers"]:
            container |= {"image": image, "imagePullPolicy": "IfNotPresent"}
    return manifest


def wait_available(kube: Kube, deployment: Json, replicas: int) -> None:
    """Until a Deployment has so many pods, all of the newest template."""
    name, namespace = deployment["metadata"]["name"], deployment["metadata"]["namespace"]

    def look(found: list[Json]) -> bool:
        return any(
            status.get("observedGeneration") == item["metadata"]["generation"]
            and item["spec"]["replicas"] == replicas
            and status.get("replicas", 0) == status.get("updatedReplicas", 0) == replicas
            and status.get("availableReplicas", 0) == replicas
            for item in found
            for status in (item.get("status", {}),)
        )

    kube.wait("Deployment", namespace, look, f"{replicas} operators run", name=name, within_s=START_S)


@contextlib.contextmanager
def away(kube: Kube, deployment: Json) -> Iterator[None]:
    """No operator in the cluster until the context ends."""
    name, namespace = deployment["metadata"]["name"], deployment["metadata"]["namespace"]
    scale(kube, deployment, 0)
    labels = ",".join(f"{key}={value}" for key, value in deployment["spec"]["selector"]["matchLabels"].items())
    kube.wait("Pod", namespace, lambda pods: not pods, "no operator runs", labels=labels, within_s=END_S)
    try:
        yield
    finally:
        kube.patch("Deployment", name, namespace, {"spec": {"replicas": 1}})
        wait_available(kube, deployment, 1)


def scale(kube: Kube, deployment: Json, replicas: int) -> None:
    """Have so many operators in the cluster."""
    name, namespace = deployment["metadata"]["name"], deployment["metadata"]["namespace"]
    kube.patch("Deployment", name, namespace, {"spec": {"replicas": replicas}})


class OperatorProcess:
    """An operator on this machine, for one namespace, under the identity of all that come after it.

    `dies_after` has it kill itself right after so many actions.
    """

    def __init__(
        self, namespace: str, image: str, log: Path, kubeconfig: str, dies_after: int = 0, identity: str = "e2e"
    ) -> None:
        self.log = log
        options = ("--namespaces", namespace, "--image", image, "--identity", identity, "--log-format", "text")
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "e2e.support.mortal", str(dies_after), *options],
                cwd=ROOT,
                env={**os.environ, "KUBECONFIG": kubeconfig},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def is_dead(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def killed_itself(self, within_s: float) -> bool:
        """Wait for its end; False when it lives on."""
        try:
            return self._process.wait(within_s) == -signal.SIGKILL
        except subprocess.TimeoutExpired:
            return False

    def kill(self) -> None:
        """SIGKILL, if it still runs."""
        self._process.kill()
        self._process.wait()


def lives(
    namespace: str, image: str, log: Path, kubeconfig: str, *, quiet_s: float, most: int, actions: Sequence[int] = (1,)
) -> int:
    """Operators one after the other, each of which kills itself after its first action, until one has nothing to do.

    Returns how many died. The last one is killed as well.
    """
    for number in range(most):
        operator = OperatorProcess(namespace, image, log, kubeconfig, dies_after=actions[number % len(actions)])
        try:
            if not operator.killed_itself(quiet_s):
                assert not operator.is_dead(), f"the operator ended by itself:\n{tail(log)}"
                return number
        finally:
            operator.kill()
    raise AssertionError(f"{most} operators were not enough:\n{tail(log)}")


def reaches_pods(cluster: DisqueCluster) -> bool:
    """Whether an operator on this machine could speak to the brokers."""
    try:
        with socket.create_connection((cluster.pods()[0]["status"]["podIP"], cluster.port), timeout=3):
            return True
    except OSError:
        return False


def tail(log: Path, lines: int = 40) -> str:
    """The end of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
