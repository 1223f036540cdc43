"""Runs Helm and kubectl as users do; a `Release` is a chart installed in a namespace."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import yaml

from e2e.support.kube import Json
from e2e.support.settings import ROOT

OPERATOR: Final = ROOT / "charts" / "disque-operator"
CLUSTER: Final = ROOT / "charts" / "disque-cluster"
COMMAND_S: Final = 240
OLDEST: Final = "1.29.0"
"""The oldest Kubernetes version that the charts support; the default of `helm template` may be older."""


def operator_values(image: str, **values: Any) -> Json:
    """Return values of the operator's chart with this image."""
    repository, _, tag = image.rpartition(":")
    return {"image": {"repository": repository, "tag": tag}} | values


class ToolFailedError(Exception):
    """Helm or kubectl failed; the text is its output."""


def run(program: str, *arguments: str, given: str = "") -> str:
    """Run a program against the Kubernetes under test and return its standard output."""
    path = shutil.which(program)
    assert path is not None, f"{program} is not installed"
    done = subprocess.run(
        [path, *arguments], input=given, capture_output=True, text=True, timeout=COMMAND_S, check=False
    )
    if done.returncode != 0:
        raise ToolFailedError(done.stdout + done.stderr)
    return done.stdout


def rendered(chart: Path, values: Path, namespace: str, *arguments: str) -> list[Json]:
    """Return the objects that a chart renders to with these values."""
    given = ("--namespace", namespace, "--values", str(values), "--kube-version", OLDEST)
    text = run("helm", "template", "demo", str(chart), *given, *arguments)
    return [item for item in yaml.safe_load_all(text) if item]


class Release:
    """A Helm release; it is uninstalled when the context ends."""

    def __init__(self, namespace: str, name: str) -> None:
        self.namespace = namespace
        self.name = name

    def install(self, chart: Path, values: Mapping[str, Any], *arguments: str) -> str:
        """Install or upgrade the release, and return the output of Helm, which includes the notes."""
        return self._run("upgrade", str(chart), "--install", "--values", "-", *arguments, given=yaml.safe_dump(values))

    def rollback(self) -> None:
        """Roll back to the previous revision."""
        self._run("rollback")

    def test(self) -> str:
        """Run the tests of the chart and return the output of Helm, with the logs of the test pods."""
        return self._run("test", "--logs")

    def uninstall(self) -> None:
        """Uninstall the release, if it exists."""
        self._run("uninstall", "--ignore-not-found", "--wait")

    def _run(self, verb: str, *arguments: str, given: str = "") -> str:
        return run("helm", verb, self.name, *arguments, "--namespace", self.namespace, given=given)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.uninstall()
