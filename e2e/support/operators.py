"""The operator: installed in the cluster from its manifests, or a local process that a test can kill."""

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
"""Kinds that other objects depend on, in the order of their creation."""


def documents(folder: Path) -> list[Json]:
    """Return the objects in the manifests of a folder, dependencies first."""
    texts = (path.read_text() for path in sorted(folder.glob("*.yaml")))
    objects = [document for text in texts for document in yaml.safe_load_all(text) if document]
    return sorted(objects, key=lambda item: FIRST.index(item["kind"]) if item["kind"] in FIRST else len(FIRST))


def install(kube: Kube, image: str) -> None:
    """Apply the resource definition and the operator, and wait until it runs. Idempotent."""
    for manifest in documents(CRDS):
        kube.apply(manifest)
        name = manifest["metadata"]["name"]
        kube.wait(manifest["kind"], "", _is_established, f"{name} is known", name=name, within_s=START_S)
    for manifest in documents(PLAIN):
        kube.apply(_with_image(manifest, image))
    wait_available(kube, deployment(), 1)


def deployment() -> Json:
    """Return the Deployment of the operator's manifests."""
    [found] = [item for item in documents(PLAIN) if item["kind"] == "Deployment"]
    return found


def uninstall(kube: Kube) -> None:
    """Delete the operator and the resource definition, and wait until they are gone, so that the next run can start."""
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
    """Wait until a Deployment has this number of available pods, all of the current template."""
    name, namespace = deployment["metadata"]["name"], deployment["metadata"]["namespace"]

    def is_available(found: list[Json]) -> bool:
        return any(
            status.get("observedGeneration") == item["metadata"]["generation"]
            and item["spec"]["replicas"] == replicas
            and status.get("replicas", 0) == status.get("updatedReplicas", 0) == replicas
            and status.get("availableReplicas", 0) == replicas
            for item in found
            for status in (item.get("status", {}),)
        )

    kube.wait("Deployment", namespace, is_available, f"{replicas} operators run", name=name, within_s=START_S)


@contextlib.contextmanager
def stopped(kube: Kube, deployment: Json) -> Iterator[None]:
    """Stop the operator in the cluster until the context ends."""
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
    """Set the number of operators in the cluster."""
    name, namespace = deployment["metadata"]["name"], deployment["metadata"]["namespace"]
    kube.patch("Deployment", name, namespace, {"spec": {"replicas": replicas}})


class OperatorProcess:
    """An operator process on this machine that watches one namespace.

    Processes with the same identity share the Lease. With `dies_after` the process kills itself after this number of
    actions.
    """

    def __init__(
        self, namespace: str, image: str, log: Path, kubeconfig: str, dies_after: int = 0, identity: str = "e2e"
    ) -> None:
        self.log = log
        options = ("--namespaces", namespace, "--image", image, "--identity", identity, "--log-format", "text")
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "e2e.support.crashing_operator", str(dies_after), *options],
                cwd=ROOT,
                env={**os.environ, "KUBECONFIG": kubeconfig},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def is_dead(self) -> bool:
        """Return whether the process has ended."""
        return self._process.poll() is not None

    def killed_itself(self, within_s: float) -> bool:
        """Wait for the process to kill itself; False if it still runs after the timeout."""
        try:
            return self._process.wait(within_s) == -signal.SIGKILL
        except subprocess.TimeoutExpired:
            return False

    def kill(self) -> None:
        """Send SIGKILL, if the process still runs."""
        self._process.kill()
        self._process.wait()


def crash_repeatedly(
    namespace: str, image: str, log: Path, kubeconfig: str, *, quiet_s: float, most: int, actions: Sequence[int] = (1,)
) -> int:
    """Run operators one after the other, each killing itself after `actions`, until one is idle for `quiet_s`.

    Returns the number of operators that killed themselves. The last one is killed as well.
    """
    for number in range(most):
        operator = OperatorProcess(namespace, image, log, kubeconfig, dies_after=actions[number % len(actions)])
        try:
            if not operator.killed_itself(quiet_s):
                assert not operator.is_dead(), f"the operator exited unexpectedly:\n{tail(log)}"
                return number
        finally:
            operator.kill()
    raise AssertionError(f"not finished after {most} operators:\n{tail(log)}")


def reaches_pods(cluster: DisqueCluster) -> bool:
    """Return whether this machine can connect to the brokers in their pods."""
    try:
        with socket.create_connection((cluster.pods()[0]["status"]["podIP"], cluster.port), timeout=3):
            return True
    except OSError:
        return False


def tail(log: Path, lines: int = 40) -> str:
    """Return the last lines of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
