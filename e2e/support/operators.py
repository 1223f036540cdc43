"""The operator: installed in the cluster from its manifests, or a local process that a test can kill."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import yaml
from kubernetes.client.exceptions import ApiException

from e2e.support import crash_loop, crashing_operator
from e2e.support.cluster import DisqueCluster, condition
from e2e.support.crash_loop import MARK
from e2e.support.kube import CLUSTER_WIDE, Json, Kube
from e2e.support.settings import ROOT

CRDS: Final = ROOT / "manifests" / "crd"
PLAIN: Final = ROOT / "manifests" / "operator"
SELECTOR: Final = "app.kubernetes.io/name=disque-operator"
CRASH_LOOP: Final = Path(crash_loop.__file__)
CRASHING_OPERATOR: Final = Path(crashing_operator.__file__)
QUIET_S: Final = 20
"""An operator that did nothing for this long has finished."""
MAX_OPERATORS: Final = 60
CRASHES_S: Final = 600
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


def crash_repeatedly(
    kube: Kube, cluster: DisqueCluster, log: Path, *, image: str, operator_image: str, actions: Sequence[int] = (1,)
) -> int:
    """Run operators in a pod one after the other, each killing itself after `actions`, until one is idle.

    Returns the number of operators that killed themselves. The operator of the Deployment must be stopped.
    """
    home = deployment()["metadata"]["namespace"]
    name = f"crash-loop-{cluster.namespace}"
    options = (
        "--image",
        image,
        "--identity",
        "e2e",
        "--log-format",
        "text",
        *_in_place_of_the_deployment(cluster.namespace),
    )
    task = {"quiet_s": QUIET_S, "most": MAX_OPERATORS, "actions": list(actions), "options": list(options)}
    scripts = {script.name: script.read_text() for script in (CRASH_LOOP, CRASHING_OPERATOR)}
    kube.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": home}, "data": scripts}
    )
    kube.create(_crash_loop(name, home, operator_image, task))
    try:
        kube.wait("Pod", home, _has_ended, "an operator has nothing left to do", within_s=CRASHES_S, name=name)
        log.write_text(kube.logs(name, home))
    finally:
        kube.delete("Pod", name, home, grace_s=0)
        kube.delete("ConfigMap", name, home)
    last = log.read_text().splitlines()[-1].partition(" ")[2]
    assert last.startswith(MARK), f"the operators did not finish:\n{tail(log)}"
    return int(last.removeprefix(MARK))


def _in_place_of_the_deployment(watched: str) -> tuple[str, ...]:
    """Return options with the Lease of the Deployment: clusters stay with the installation that claimed them."""
    return ("--namespaces", watched, "--lease-namespace", deployment()["metadata"]["namespace"])


def _crash_loop(name: str, namespace: str, image: str, task: Json) -> Json:
    """Return a pod with the rights, labels and restrictions of the operator, which runs `crash_loop`."""
    template: Json = copy.deepcopy(deployment()["spec"]["template"])
    [container] = template["spec"]["containers"]
    for probe in ("livenessProbe", "readinessProbe", "env", "ports"):
        container.pop(probe, None)
    container |= {
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python", f"/e2e/{CRASH_LOOP.name}", json.dumps(task)],
        "volumeMounts": [{"name": "e2e", "mountPath": "/e2e", "readOnly": True}],
    }
    template["spec"] |= {"restartPolicy": "Never", "volumes": [{"name": "e2e", "configMap": {"name": name}}]}
    metadata = {"name": name, "namespace": namespace, "labels": template["metadata"]["labels"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def _has_ended(pods: list[Json]) -> bool:
    return any(pod["status"].get("phase") in {"Succeeded", "Failed"} for pod in pods)


class OperatorProcess:
    """An operator process on this machine that watches one namespace. Those with one identity share the Lease."""

    def __init__(self, namespace: str, image: str, log: Path, kubeconfig: str, *, identity: str) -> None:
        self.log = log
        options = (
            "--image",
            image,
            "--identity",
            identity,
            "--log-format",
            "text",
            *_in_place_of_the_deployment(namespace),
        )
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "disque_operator.main", *options],
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

    def kill(self) -> None:
        """Send SIGKILL, if the process still runs."""
        self._process.kill()
        self._process.wait()


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
