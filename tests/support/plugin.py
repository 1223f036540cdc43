"""Runs `kubectl disque` as a process against a fake Kubernetes, and creates objects for it."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from support.fake_kubectl import CLUSTERS, FakeKubernetes, Json

MAIN: Final = ("-m", "disque_operator.kubectl.main")
TIMEOUT_S: Final = 60
PASSWORD: Final = "pa55word of orders"


@dataclass(frozen=True)
class Plugin:
    """Runs `kubectl disque` against a fake Kubernetes."""

    kubernetes: FakeKubernetes

    def environment(self) -> dict[str, str]:
        """Return the environment of the tests, with the fake `kubectl`."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("DISQUE_")}
        return kept | self.kubernetes.environment

    def __call__(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command until it ends."""
        return subprocess.run(
            [sys.executable, *MAIN, *words],
            capture_output=True,
            check=False,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=TIMEOUT_S,
            env=self.environment() | variables,
        )

    def ok(self, *words: str) -> str:
        """Run a command that must succeed, and return its output."""
        done = self(*words)
        assert done.returncode == 0, done
        return done.stdout

    def json(self, *words: str) -> Any:
        """Run a command with `-o json`, and return the parsed output."""
        return json.loads(self.ok(*words, "-o", "json"))

    @contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Run a command in the background; it is terminated when the context ends."""
        command = [sys.executable, *MAIN, *words]
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command, stdout=pipe, stderr=pipe, encoding="utf-8", env=self.environment() | {"PYTHONUNBUFFERED": "1"}
        ) as process:
            try:
                yield process
            finally:
                process.terminate()


def cluster(name: str = "orders", replicas: int = 3, *, generation: int = 1, status: Json | None = None) -> Json:
    """Return a DisqueCluster."""
    return {
        "apiVersion": "disque.dev/v1alpha1",
        "kind": "DisqueCluster",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": f"uid-of-{name}",
            "generation": generation,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"replicas": replicas},
        "status": status or {},
    }


def running(name: str = "orders", replicas: int = 3, *, generation: int = 1) -> Json:
    """Return the status of a healthy cluster."""
    return {
        "observedGeneration": generation,
        "phase": "Running",
        "message": f"all {replicas} members are ready and connected",
        "replicas": replicas,
        "readyReplicas": replicas,
        "version": "0.1.0",
        "endpoint": f"{name}.shop.svc:7711",
        "secretName": f"{name}-default-user",
        "conditions": [
            condition("Ready", "True", "AllMembersConnected", f"all {replicas} members are ready and connected")
        ],
        "members": [
            {
                "pod": f"{name}-{ordinal}",
                "nodeId": f"{ordinal}" * 40,
                "address": f"{name}-{ordinal}.{name}-members.shop.svc:7711",
                "node": f"node-{ordinal}",
                "state": "ready",
                "version": "0.1.0",
                "jobs": 10 * ordinal,
                "queued": ordinal,
                "queues": 1,
                "usedMemory": 1048576,
                "maxMemory": 1073741824,
                "leaving": False,
                "safeToStop": True,
                "message": "",
            }
            for ordinal in range(replicas)
        ],
        "jobs": {"registered": 30, "queued": 3},
    }


def condition(kind: str, status: str, reason: str, message: str) -> Json:
    """Return a condition."""
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": 1,
    }


def pod(name: str, uid: str = "", *, phase: str = "Running", of: str = "orders") -> Json:
    """Return a pod of a cluster."""
    return {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": uid or f"uid-of-{name}",
            "labels": {"app.kubernetes.io/name": "disque", "disque.dev/cluster": of},
        },
        "spec": {"nodeName": f"node-of-{name}", "containers": [{"name": "broker", "env": []}]},
        "status": {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": "True" if phase == "Running" else "False"}],
            "containerStatuses": [{"name": "broker", "state": {"running": {}}, "restartCount": 0}],
        },
    }


def secret(name: str = "orders-auth", password: str = PASSWORD, **more: str) -> Json:
    """Return the Secret of a cluster."""
    data = {key: base64.b64encode(value.encode()).decode() for key, value in {"password": password, **more}.items()}
    return {
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "shop", "labels": {"disque.dev/cluster": "orders"}},
        "data": data,
    }


def put(kubernetes: FakeKubernetes, found: Json, pods: Sequence[Json] | None = None) -> None:
    """Add a cluster and its pods to the fake."""
    name, replicas = found["metadata"]["name"], found["spec"]["replicas"]
    kubernetes.add(CLUSTERS, found)
    kubernetes.add(
        "pods", *([pod(f"{name}-{ordinal}", of=name) for ordinal in range(replicas)] if pods is None else pods)
    )


def steps(kubernetes: FakeKubernetes, *patches: Mapping[str, Any]) -> None:
    """Set the operator's changes; each GET of the cluster applies the next one."""
    kubernetes.change(pending_changes=list(patches))
