"""Diagnostics of a failed test: the objects, events and logs of a namespace, and replies of the brokers."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import urllib3
from kubernetes.client.exceptions import ApiException

from e2e.support.brokers import UNREACHABLE
from e2e.support.cluster import Members
from e2e.support.kube import PATHS, Json, Kube

LEFT_OUT: Final = frozenset(("Secret", "Event", "Node", "PersistentVolume", "Namespace", "CustomResourceDefinition"))
COMMANDS: Final = (("INFO", "all"), ("CLUSTER", "NODES"), ("CLUSTER", "INFO"), ("CLUSTER", "LEAVING", "status"))


def collect(kube: Kube, namespace: str, folder: Path) -> None:
    """Write diagnostics to the folder; where something cannot be read, its file has the error."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in PATHS.keys() - LEFT_OUT - {"ClusterRole", "ClusterRoleBinding"}:
        _write(folder / f"{kind}.json", partial(_objects, kube, kind, namespace))
    _write(folder / "events.txt", lambda: "\n".join(map(_line, _sorted(kube.all("Event", namespace)))))
    pods = _pods(kube, namespace)
    for pod in pods:
        name = pod["metadata"]["name"]
        for status in pod["status"].get("containerStatuses", []):
            logs = partial(kube.logs, name, namespace, container=status["name"])
            _write(folder / f"{name}.{status['name']}.log", logs)
            if status.get("restartCount"):
                _write(folder / f"{name}.{status['name']}.previous.log", partial(logs, previous=True))
    for cluster in {pod["metadata"].get("labels", {}).get("disque.dev/cluster") for pod in pods} - {None}:
        _write(folder / f"{cluster}.brokers.txt", partial(_brokers, Members(kube, namespace, cluster)))


def _objects(kube: Kube, kind: str, namespace: str) -> str:
    return json.dumps(kube.all(kind, namespace), indent=1)


def _write(path: Path, text: Callable[[], str]) -> None:
    try:
        path.write_text(text())
    except (ApiException, urllib3.exceptions.HTTPError) as error:
        path.write_text(f"cannot read: {error}")


def _pods(kube: Kube, namespace: str) -> list[Json]:
    try:
        return kube.all("Pod", namespace)
    except (ApiException, urllib3.exceptions.HTTPError):
        return []


def _sorted(events: list[Json]) -> list[Json]:
    return sorted(events, key=lambda event: str(event.get("eventTime") or event.get("lastTimestamp")))


def _line(event: Json) -> str:
    about = event["involvedObject"]
    when = event.get("lastTimestamp") or event.get("eventTime")
    return (
        f"{when} {event['type']} {event['reason']} {about.get('kind')}/{about.get('name')}: {event.get('message', '')}"
    )


def _brokers(members: Members) -> str:
    answers = []
    with members.brokers() as brokers:
        for broker in brokers:
            for words in COMMANDS:
                try:
                    reply = broker.call(*words)
                    shown = reply.decode() if isinstance(reply, bytes) else repr(reply)
                except UNREACHABLE as error:
                    shown = repr(error)
                answers.append(f"--- {broker.pod}: {' '.join(words)}\n{shown}")
    return "\n".join(answers)
