"""Pods with a label that try to connect, to show what network policies admit.

caller = Caller(kube, namespace, "worker", image)
caller.reaches("10.0.0.7", 7711)
"""

from __future__ import annotations

from typing import Any, Final

from e2e.support.kube import Json, Kube

START_S: Final = 60
CONNECT_S: Final = 2
ROLE: Final = "e2e/role"
LISTEN_PORT: Final = 8000
_CONNECT: Final = """\
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), float(sys.argv[3])).close()
except OSError:
    print("closed")
else:
    print("open")
"""


class Caller:
    """A pod with the label `ROLE`, which also listens on a port."""

    def __init__(self, kube: Kube, namespace: str, role: str, image: str) -> None:
        self._kube = kube
        self._namespace = namespace
        self._role = role
        kube.create(_manifest(namespace, role, image))
        found = kube.wait("Pod", namespace, _running, f"{role} runs", name=role, within_s=START_S)
        self.address: str = found["status"]["podIP"]

    def reaches(self, address: str, port: int) -> bool:
        """Return whether the pod can connect."""
        return reaches(self._kube, self._namespace, self._role, address, port)


def reaches(kube: Kube, namespace: str, pod: str, address: str, port: int) -> bool:
    """Return whether a pod, whose image has Python, can connect."""
    answer = kube.execute(pod, namespace, "python", "-c", _CONNECT, address, str(port), str(CONNECT_S)).strip()
    assert answer in {"open", "closed"}, answer
    return answer == "open"


def peer(role: str) -> Json:
    """Return the peer of a network policy that admits the pods of a role."""
    return {"podSelector": {"matchLabels": {ROLE: role}}}


def refusal(namespace: str, role: str) -> Json:
    """Return a policy that admits nobody to the pods of a role."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": f"nobody-to-{role}", "namespace": namespace},
        "spec": {"podSelector": {"matchLabels": {ROLE: role}}, "policyTypes": ["Ingress"]},
    }


def _running(pods: list[Json]) -> Any:
    return next((pod for pod in pods if pod["status"].get("phase") == "Running" and pod["status"].get("podIP")), None)


def _manifest(namespace: str, role: str, image: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": role, "namespace": namespace, "labels": {ROLE: role}},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 10001,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "caller",
                    "image": image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["python", "-m", "http.server", str(LISTEN_PORT)],
                    "readinessProbe": {"tcpSocket": {"port": LISTEN_PORT}, "periodSeconds": 1},
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                }
            ],
        },
    }
