"""Kubernetes, by way of `kubectl`: every request is a run of it.

People's kubeconfigs name credential plugins, proxies and certificates in many ways, all of which `kubectl` knows and
reports on; who runs a plugin of it has it. A run takes about a tenth of a second, less than importing a client library.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from typing import IO, Any, cast

from disque_operator import names
from disque_operator.apivalues import Json

RESOURCE = f"{names.PLURAL}.{names.GROUP}"
_UNREACHABLE = re.compile(
    r"connection to the server|Unable to connect|connection refused|no route to host|i/o timeout|TLS handshake timeout"
    r"|context deadline exceeded|Client\.Timeout|no such host|unexpected EOF|etcdserver|ServiceUnavailable"
)
"""What `kubectl` says when it got no answer, or one that nothing can be concluded from."""
_NOT_INSTALLED = re.compile(rf"doesn't have a resource type \"{names.PLURAL}|could not find the requested resource")
_MISSING = "(NotFound)"


class RefusedError(Exception):
    """Kubernetes, or a node, said no; the text says why and what to do."""


class MissingError(RefusedError):
    """There is no such object."""


class UnreachableError(Exception):
    """Kubernetes, or a node, can not be reached."""


class Kubectl:
    """Runs `kubectl` with the context and namespace that were asked for."""

    def __init__(self, flags: Sequence[str] = ()) -> None:
        self._words = (shutil.which("kubectl") or "kubectl", *flags)

    def text(self, *words: str) -> str:
        """What a run writes on standard output.

        Raises:
            RefusedError: it failed, and why.
            UnreachableError: it got no answer.
        """
        try:
            done = subprocess.run(  # noqa: S603  no shell; the words are those of the person who runs us
                [*self._words, *words],
                capture_output=True,
                check=False,
                encoding="utf-8",
                errors="replace",
            )
        except FileNotFoundError as error:
            raise UnreachableError("There is no kubectl on the PATH; everything is done by it") from error
        if done.returncode:
            raise failure(done.stderr.strip())
        return done.stdout

    def json(self, *words: str) -> Json:
        """The object that a run shows."""
        return cast("Json", json.loads(self.text(*words, "--output", "json")))

    def items(self, *words: str) -> list[Json]:
        """The objects of the list that a run shows."""
        return cast("list[Json]", self.json(*words)["items"])

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A run that goes on beside us; standard error is written among the output."""
        return subprocess.Popen(  # noqa: S603  as above
            [*self._words, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        )

    def cluster(self, name: str) -> Json:
        """The `DisqueCluster` of that name."""
        return self.json("get", RESOURCE, name)

    def patch(self, name: str, patch: Json) -> Json:
        """The `DisqueCluster` with these fields changed."""
        return self.json("patch", RESOURCE, name, "--type", "merge", "--patch", json.dumps(patch))

    def pods(self, name: str) -> list[Json]:
        """The pods of that cluster's nodes, by ordinal."""
        selector = ",".join(f"{label}={value}" for label, value in names.selector(name).items())
        found = self.items("get", "pods", "--selector", selector)
        member = re.compile(rf"{re.escape(name)}-\d+")
        return sorted((pod for pod in found if member.fullmatch(pod["metadata"]["name"])), key=_ordinal)


def failure(complaint: str) -> Exception:
    """The error for what `kubectl` wrote when it failed."""
    if _UNREACHABLE.search(complaint):
        return UnreachableError(complaint)
    if _NOT_INSTALLED.search(complaint):
        return RefusedError(
            f"{complaint}\nThis Kubernetes cluster has no {names.KIND} yet: install the operator first "
            "(docs/howto/kubernetes.md)"
        )
    if _MISSING in complaint:
        hint = "\n`kubectl disque status --all-namespaces` lists those that exist" if RESOURCE in complaint else ""
        return MissingError(f"{complaint}{hint}")
    return RefusedError(complaint or "kubectl failed and did not say why")


def output_of(process: subprocess.Popen[str]) -> IO[str]:
    """The output of a process made by `Kubectl.start`."""
    assert process.stdout is not None
    return process.stdout


def _ordinal(pod: dict[str, Any]) -> int:
    return names.ordinal(pod["metadata"]["name"])
