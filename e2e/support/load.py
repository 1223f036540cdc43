"""Load from pods, through the client Service, with an account of every job.

    with Load(kube, cluster, image) as load:
        ...  # something happens to the cluster
        account = load.settle()
    account.check(at_least=500)

The producer and the consumer are pods. A `Backlog` adds many jobs at once and leaves them queued. A test that stops a
Kubernetes node can keep these pods off it with `avoid`, because their logs are the evidence.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from e2e.support.account import Account
from e2e.support.brokers import poll
from e2e.support.cluster import Members
from e2e.support.kube import CommandFailedError, Json, Kube
from e2e.support.settings import RESULTS

SCRIPT: Final = Path(__file__).with_name("loadpod.py")
KEPT: Final = RESULTS / "load"
"""The logs of the pods, with timestamps."""
START_S: Final = 60
STARTED: Final = 20
ENOUGH: Final = 500
"""How many jobs are added before the test changes the cluster, and before the load ends."""
SETTLE_S: Final = 90
USER: Final = 10001
STOP: Final = ("python", "-c", "import os, signal; os.kill(1, signal.SIGTERM)")


class Load:
    """Pods that add and consume jobs until the context ends."""

    def __init__(
        self, kube: Kube, cluster: Members, image: str, *, rate: int = 40, replicate: int = 2, avoid: str = ""
    ) -> None:
        self.account: Account = Account()
        self._kube = kube
        self._cluster = cluster
        self._image = image
        self._rate = rate
        self._replicate = replicate
        self._avoid = avoid
        """A Kubernetes node on which the pods must not run."""
        self._running: list[str] = []

    def __enter__(self) -> Self:
        self._kube.apply(self._script())
        self.consume()
        self.produce()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:  # after a failure their logs are collected first; the namespace is deleted later
            for pod in self._running:
                self._kube.delete("Pod", pod, self._cluster.namespace, grace_s=0)

    def produce(self) -> None:
        """Start the producer and wait until it has added some jobs."""
        self._start("producer", "produce", {"rate": self._rate, "replicate": self._replicate})
        self._wait_added()

    def consume(self) -> None:
        """Start the consumer."""
        self._start("consumer", "consume", {})

    def settle(self) -> Account:
        """Stop the producer after it has added enough, wait until all jobs are done, and return the account."""
        self._wait_added(ENOUGH)
        self.stop("producer")
        self.wait_empty()
        self.stop("consumer")
        return self.account

    def _wait_added(self, count: int = STARTED) -> None:
        def added() -> bool:
            account = Account()
            account.read(_facts(self._kube.logs(self._pod("producer"), self._cluster.namespace)))
            return len(account.added) >= count

        poll(added, f"{count} jobs are added", SETTLE_S)

    def wait_empty(self, within_s: float = SETTLE_S) -> None:
        """Wait until no node has a job that it can still deliver."""
        with self._cluster.brokers() as brokers:
            poll(lambda: not any(broker.has_work() for broker in brokers), "no node has work left", within_s)

    def stop(self, role: str) -> None:
        """Stop the pod of a role, and read its log."""
        pod = self._pod(role)
        namespace = self._cluster.namespace
        with contextlib.suppress(CommandFailedError):  # the end of the pod may also end the command
            self._kube.execute(pod, namespace, *STOP)
        self._kube.wait("Pod", namespace, _has_ended, f"{pod} ends", name=pod, within_s=START_S)
        text = self._kube.logs(pod, namespace)
        KEPT.mkdir(parents=True, exist_ok=True)
        (KEPT / f"{namespace}.{pod}.log").write_text(text)
        self.account.read(_facts(text))
        self._kube.delete("Pod", pod, namespace, grace_s=0)
        self._running.remove(pod)

    def _pod(self, role: str) -> str:
        return f"{self._cluster.name}-{role}"

    def _start(self, role: str, task: str, settings: Json) -> None:
        pod = self._pod(role)
        settings = {"name": role, "service": f"{self._cluster.service}:{self._cluster.port}"} | settings
        self._kube.create(self._manifest(pod, task, settings))
        self._running.append(pod)
        self._kube.wait("Pod", self._cluster.namespace, _is_running, f"{pod} runs", name=pod, within_s=START_S)

    def _script(self) -> Json:
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "load", "namespace": self._cluster.namespace},
            "data": {SCRIPT.name: SCRIPT.read_text()},
        }

    def _manifest(self, pod: str, task: str, settings: Json) -> Json:
        secret = {"secretName": self._cluster.client_secret, "optional": True}
        spec: Json = {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 1,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": USER,
                "runAsGroup": USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "volumes": [
                {"name": "load", "configMap": {"name": "load"}},
                {"name": "auth", "secret": secret},
            ],
            "containers": [
                {
                    "name": "load",
                    "image": self._image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["python", f"/load/{SCRIPT.name}", task],
                    "env": [{"name": "LOAD", "value": json.dumps(settings)}],
                    "volumeMounts": [
                        {"name": "load", "mountPath": "/load", "readOnly": True},
                        {"name": "auth", "mountPath": "/auth", "readOnly": True},
                    ],
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                        "readOnlyRootFilesystem": True,
                    },
                }
            ],
        }
        if self._avoid:
            spec["affinity"] = {"nodeAffinity": _not_on(self._avoid)}
        labels = {"app.kubernetes.io/name": "load", "app.kubernetes.io/instance": self._cluster.name}
        metadata = {"name": pod, "namespace": self._cluster.namespace, "labels": labels}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


class Backlog(Load):
    """Jobs that are added at once and stay queued until `consume`."""

    def __init__(
        self,
        kube: Kube,
        cluster: Members,
        image: str,
        jobs: dict[str, int],
        *,
        take: int = 0,
        replicate: int = 1,
    ) -> None:
        super().__init__(kube, cluster, image, replicate=replicate)
        self._jobs = jobs
        """Number of jobs of each kind."""
        self._take = take
        """Number of jobs that are fetched and not acknowledged."""

    def __enter__(self) -> Self:
        self._kube.apply(self._script())
        settings = {"jobs": self._jobs, "take": self._take, "replicate": self._replicate}
        self._start("filler", "fill", settings)
        pod = self._pod("filler")
        poll(
            lambda: self._kube.logs(pod, self._cluster.namespace).rstrip().endswith(" filled"),
            "all jobs are added",
            START_S,
        )
        self.stop("filler")
        return self

    def settle(self) -> Account:
        """Wait until all jobs are done, stop the consumer, and return the account."""
        self.wait_empty()
        self.stop("consumer")
        return self.account


def _facts(text: str) -> Iterator[str]:
    """Yield the lines of a log without their timestamps."""
    return (line.partition(" ")[2] for line in text.splitlines())


def _not_on(node: str) -> Json:
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [node]}]}]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def _is_running(pods: list[Json]) -> Any:
    return [pod for pod in pods if pod["status"]["phase"] in {"Running", "Succeeded"}]


def _has_ended(pods: list[Json]) -> Any:
    failed = [pod for pod in pods if pod["status"]["phase"] == "Failed"]
    assert not failed, "a pod of the load failed; see its log in the results"
    return [pod for pod in pods if pod["status"]["phase"] == "Succeeded"]
