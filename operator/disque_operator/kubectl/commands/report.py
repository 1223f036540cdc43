"""`kubectl disque report NAME`: collect diagnostics into one file, without passwords and job bodies.

Reports are made when something is broken, so a part that cannot be collected is listed in `missing.txt` and does not
stop the others.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from disque_operator import names
from disque_operator.apivalues import Json
from disque_operator.kubectl.api import RESOURCE, Kubectl, RequestRefusedError, UnreachableError
from disque_operator.kubectl.exits import Exit
from disque_operator.kubectl.members import Login, Members, choose_login, passwords
from disque_operator.kubectl.redaction import redacted, scrubbed
from disque_operator.kubectl.resource import now_utc
from disqued import __version__
from disqued.cli.endpoint import add_login_options
from disqued.client import Client, DisqueError, Reply
from disqued.config.options import OPTIONS

T = TypeVar("T")

CHILDREN = (
    "statefulset",
    "controllerrevision",
    "pod",
    "service",
    "endpointslice",
    "configmap",
    "secret",
    "persistentvolumeclaim",
    "poddisruptionbudget",
    "networkpolicy",
    "serviceaccount",
    "cronjob",
    "job",
)
QUESTIONS: dict[str, tuple[str, ...]] = {
    "info.txt": ("INFO",),
    "cluster-nodes.txt": ("CLUSTER", "NODES"),
    "cluster-info.txt": ("CLUSTER", "INFO"),
    "leaving.txt": ("CLUSTER", "LEAVING", "status"),
    "hello.txt": ("HELLO",),
    "latency.txt": ("LATENCY", "LATEST"),
}
"""The commands run on each node, by file. The slow log is left out, because it contains job bodies."""
DIRECTIVES = tuple(option.name for option in OPTIONS if option.shown and not option.secret)
"""The directives in `config.txt`. A node is not asked for passwords, so they need not be redacted."""
LOG_LINES = 20_000


def options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("name", help="name of the cluster")
    parser.add_argument("-f", "--file", type=Path, help="output (default: disque-report-NAMESPACE-NAME-TIME.tar.gz)")
    parser.add_argument(
        "--tail", type=int, default=LOG_LINES, metavar="LINES", help=f"recent lines of each log (default {LOG_LINES})"
    )
    add_login_options(parser)


def run(kubectl: Kubectl, chosen: argparse.Namespace) -> Exit:
    """Collect the diagnostics, and write the file."""
    cluster = kubectl.cluster(chosen.name)
    report = Report(kubectl, cluster, chosen.tail, choose_login(chosen, kubectl, cluster))
    report.collect()
    namespace = cluster["metadata"]["namespace"]
    stem = f"disque-report-{namespace}-{chosen.name}-{now_utc():%Y%m%dT%H%M%SZ}"
    path: Path = chosen.file or Path(f"{stem}.tar.gz")
    path.write_bytes(report.archive(stem))
    sys.stdout.write(f"{path}\n")
    for line in report.missing:
        sys.stderr.write(f"warning: not included: {line}\n")
    return Exit.OK


class Report:
    """Collects the files of a report, by their paths in the archive."""

    def __init__(self, kubectl: Kubectl, cluster: Json, log_lines: int, login: Login) -> None:
        self._kubectl = kubectl
        self._cluster = cluster
        self._log_lines = log_lines
        self._login = login
        self._secrets: tuple[str, ...] = ()
        self.files: dict[str, str] = {}
        self.missing: list[str] = []

    @property
    def _name(self) -> str:
        return str(self._cluster["metadata"]["name"])

    def collect(self) -> None:
        """Collect all files into `files`; what cannot be collected is added to `missing`."""
        self._secrets = self._try("password", lambda: passwords(self._kubectl, self._cluster)) or ()
        self._add_json("cluster.json", self._cluster)
        self._add("versions.txt", f"kubectl disque {__version__}\n")
        self._add_text("kubernetes-version.txt", "version")
        for kind in CHILDREN:
            self._add_objects(kind, "--selector", f"{names.CLUSTER_LABEL}={self._name}")
        self._events()
        self._add_text("kubernetes-nodes.txt", "get", "nodes", "--output", "wide")
        self._logs()
        self._operator()
        self._nodes()

    def archive(self, stem: str) -> bytes:
        """Return the content of the .tar.gz file."""
        files = dict(self.files)
        if self.missing:
            files["missing.txt"] = "".join(f"{line}\n" for line in self.missing)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            for path in sorted(files):
                content = scrubbed(files[path], self._secrets).encode("utf-8", "surrogateescape")
                entry = tarfile.TarInfo(f"{stem}/{path}")
                entry.size, entry.mtime, entry.mode = len(content), int(time.time()), 0o644
                tar.addfile(entry, io.BytesIO(content))
        return packed.getvalue()

    def _events(self) -> None:
        """Add the events about the cluster and its objects."""
        events = self._try("events", lambda: self._kubectl.items("get", "events", "--sort-by", ".lastTimestamp")) or []
        ours = [event for event in events if self._is_ours(event["involvedObject"].get("name", ""))]
        self._add_json("events.json", ours)
        self._add("events.txt", "".join(map(_event_line, ours)))

    def _is_ours(self, name: str) -> bool:
        return name == self._name or name.startswith((f"{self._name}-", f"{names.DATA}-{self._name}-"))

    def _logs(self) -> None:
        for pod in self._try("pods", lambda: self._kubectl.pods(self._name)) or []:
            name = pod["metadata"]["name"]
            self._log(name, f"logs/{name}.log", "--container", names.CONTAINER)
            containers = pod.get("status", {}).get("containerStatuses") or ()
            if any(each.get("restartCount") for each in containers):
                self._log(name, f"logs/{name}.previous.log", "--container", names.CONTAINER, "--previous")

    def _log(self, pod: str, path: str, *words: str) -> None:
        self._add_text(path, "logs", pod, "--timestamps", f"--tail={self._log_lines}", *words)

    def _operator(self) -> None:
        """Add the operator's pods and logs from any namespace, if the user may read them."""
        selector = ",".join(f"{label}={value}" for label, value in names.OPERATOR_LABELS.items())
        words = ("get", "pods", "--all-namespaces", "--selector", selector)
        for pod in self._try("operator", lambda: self._kubectl.items(*words)) or []:
            metadata = pod["metadata"]
            path = f"operator/{metadata['namespace']}-{metadata['name']}"
            self._add_json(f"{path}.json", pod)
            self._log(metadata["name"], f"{path}.log", "--namespace", metadata["namespace"])
        self._add_text("operator/crd.yaml", "get", "customresourcedefinition", RESOURCE, "--output", "yaml")

    def _nodes(self) -> None:
        """Add the replies of the nodes."""

        def query_all() -> dict[str, dict[str, Reply | str]]:
            members = Members(self._kubectl, self._cluster, self._login)
            answers = members.query(_query)
            self.missing += [f"nodes/{pod}: {reason}" for pod, reason in members.unreachable.items()]
            return answers

        for pod, replies in (self._try("nodes", query_all) or {}).items():
            for path, reply in replies.items():
                self._add(f"nodes/{pod}/{path}", readable(reply))

    def _add_objects(self, kind: str, *words: str) -> None:
        for found in self._try(kind, lambda: self._kubectl.items("get", kind, *words)) or []:
            self._add_json(f"children/{kind}-{found['metadata']['name']}.json", found)

    def _add_text(self, path: str, *words: str) -> None:
        text = self._try(path, lambda: self._kubectl.text(*words))
        if text is not None:
            self._add(path, text)

    def _add_json(self, path: str, value: object) -> None:
        self._add(path, json.dumps(redacted(value, self._secrets), indent=2) + "\n")

    def _add(self, path: str, text: str) -> None:
        self.files[path] = text

    def _try(self, what: str, get: Callable[[], T]) -> T | None:
        """Return the result of `get`; if it fails, add a line to `missing` and return None."""
        try:
            return get()
        except (RequestRefusedError, UnreachableError) as error:
            self.missing.append(f"{what}: {' '.join(str(error).split())}")
            return None


def _query(client: Client) -> dict[str, Reply | str]:
    """Return the replies by file. Errors are recorded as replies: a node that loads its AOF gives many."""
    answers = client.execute_many([*QUESTIONS.values(), *(("CONFIG", "GET", name) for name in DIRECTIVES)])
    replies = {
        path: str(answer) if isinstance(answer, DisqueError) else answer
        for path, answer in zip(QUESTIONS, answers, strict=False)
    }
    return replies | {"config.txt": _joined(answers[len(QUESTIONS) :])}


def _joined(settings: list[Reply | DisqueError]) -> Reply | str:
    """Return names and values of all directives as one reply, or the first error."""
    joined: list[Reply] = []
    for answer in settings:
        if isinstance(answer, DisqueError):
            return str(answer)
        joined += answer if isinstance(answer, list) else []
    return joined


def readable(reply: Reply | str) -> str:
    """Format a reply as lines; a name and its value share a line."""
    match reply:
        case bytes():
            return reply.decode("utf-8", "surrogateescape").replace("\r\n", "\n")
        case list():
            return "".join(_lines(reply, ""))
        case _:
            return f"{reply}\n"


def _lines(items: list[Reply], indent: str) -> Iterator[str]:
    flat = all(not isinstance(item, list) for item in items)
    if flat and len(items) % 2 == 0:
        yield from (
            f"{indent}{_word(name)} {_word(value)}\n" for name, value in zip(items[::2], items[1::2], strict=True)
        )
        return
    for item in items:
        if isinstance(item, list):
            yield indent + " ".join(map(_word, item)) + "\n"
        else:
            yield f"{indent}{_word(item)}\n"


def _word(item: Reply) -> str:
    return item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else str(item)


def _event_line(event: Json) -> str:
    about = event["involvedObject"]
    at = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp", "")
    what = f"{about['kind']}/{about.get('name', '')}"
    return f"{at} {event['type']} {event['reason']} {what}: {(event.get('message') or '').strip()}\n"
