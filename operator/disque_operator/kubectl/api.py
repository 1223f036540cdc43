"""Access to Kubernetes by running `kubectl`, once for each request.

Kubeconfigs name credential plugins, proxies and certificates in many ways. `kubectl` supports them all, reports their
errors, and is installed wherever this plugin runs. A run takes about 0.1 s, less than importing a client library.
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
"""What `kubectl` writes when the API server did not answer, or answered that it cannot serve the request now."""
_NOT_INSTALLED = re.compile(rf"doesn't have a resource type \"{names.PLURAL}|could not find the requested resource")
_MISSING = "(NotFound)"


class RequestRefusedError(Exception):
    """Kubernetes or a node rejected a request. The text says why and what to do."""


class MissingError(RequestRefusedError):
    """The object does not exist."""


class UnreachableError(Exception):
    """Kubernetes or a node cannot be reached."""


def retrying(error: UnreachableError) -> str:
    """Return the message of commands that keep trying while the API server does not answer."""
    return f"Kubernetes API unreachable, retrying: {error}"


class Kubectl:
    """Runs `kubectl` with the chosen context and namespace."""

    def __init__(self, flags: Sequence[str] = ()) -> None:
        self._words = (shutil.which("kubectl") or "kubectl", *flags)

    def text(self, *words: str) -> str:
        """Run `kubectl` with these arguments and return its standard output.

        Raises:
            RequestRefusedError: the command failed; the text is that of `kubectl`.
            UnreachableError: the API server did not answer, or `kubectl` is not installed.
        """
        try:
            done = subprocess.run(  # noqa: S603  no shell; the arguments come from the user who runs this
                [*self._words, *words],
                capture_output=True,
                check=False,
                encoding="utf-8",
                errors="replace",
            )
        except FileNotFoundError as error:
            raise UnreachableError("kubectl not found in PATH; install it first") from error
        if done.returncode:
            raise failure(done.stderr.strip())
        return done.stdout

    def json(self, *words: str) -> Json:
        """Run a command that prints one object, and return the object."""
        return cast("Json", json.loads(self.text(*words, "--output", "json")))

    def items(self, *words: str) -> list[Json]:
        """Run a command that prints a list, and return its objects."""
        return cast("list[Json]", self.json(*words)["items"])

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start `kubectl` in the background; its standard error is merged into its output."""
        return subprocess.Popen(  # noqa: S603  as above
            [*self._words, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        )

    def cluster(self, name: str) -> Json:
        """Return the `DisqueCluster` of that name."""
        return self.json("get", RESOURCE, name)

    def patch(self, name: str, patch: Json) -> Json:
        """Apply a merge patch to the `DisqueCluster` and return the result."""
        return self.json("patch", RESOURCE, name, "--type", "merge", "--patch", json.dumps(patch))

    def pods(self, name: str) -> list[Json]:
        """Return the pods of the cluster, sorted by ordinal."""
        selector = ",".join(f"{label}={value}" for label, value in names.selector(name).items())
        found = self.items("get", "pods", "--selector", selector)
        member = re.compile(rf"{re.escape(name)}-\d+")
        return sorted((pod for pod in found if member.fullmatch(pod["metadata"]["name"])), key=_ordinal)


def failure(message: str) -> Exception:
    """Return the error that matches what `kubectl` wrote when it failed."""
    if _UNREACHABLE.search(message):
        return UnreachableError(message)
    if _NOT_INSTALLED.search(message):
        return RequestRefusedError(
            f"{message}\nthe resource type {names.KIND} is not installed in this Kubernetes cluster; "
            "install the operator first (docs/howto/kubernetes.md)"
        )
    if _MISSING in message:
        hint = "\nlist all clusters with: kubectl disque status --all-namespaces" if RESOURCE in message else ""
        return MissingError(f"{message}{hint}")
    return RequestRefusedError(message or "kubectl failed without an error message")


def output_of(process: subprocess.Popen[str]) -> IO[str]:
    """Return the output stream of a process that `Kubectl.start` started."""
    assert process.stdout is not None
    return process.stdout


def _ordinal(pod: dict[str, Any]) -> int:
    return names.ordinal(pod["metadata"]["name"])
