"""Helm and kubectl, as people use them: a release of a chart in a namespace."""

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
"""The oldest Kubernetes that the charts take; what `helm template` without a cluster knows by itself may be older."""


class RefusedError(Exception):
    """Helm or kubectl did not do it; the text is what they said."""


def run(program: str, *arguments: str, given: str = "") -> str:
    """Run one of them on the Kubernetes of the tests; what it wrote."""
    path = shutil.which(program)
    assert path is not None, f"{program} is not installed"
    done = subprocess.run(
        [path, *arguments], input=given, capture_output=True, text=True, timeout=COMMAND_S, check=False
    )
    if done.returncode != 0:
        raise RefusedError(done.stdout + done.stderr)
    return done.stdout


def rendered(chart: Path, values: Path, namespace: str, *arguments: str) -> list[Json]:
    """The objects of a release for the Kubernetes of the tests."""
    given = ("--namespace", namespace, "--values", str(values), "--kube-version", OLDEST)
    text = run("helm", "template", "demo", str(chart), *given, *arguments)
    return [item for item in yaml.safe_load_all(text) if item]


class Release:
    """A release. It is uninstalled when the context ends, if it is still there."""

    def __init__(self, namespace: str, name: str) -> None:
        self.namespace = namespace
        self.name = name

    def install(self, chart: Path, values: Mapping[str, Any], *arguments: str) -> str:
        """Install a chart, or upgrade what is there; what people read then."""
        return self._run("upgrade", str(chart), "--install", "--values", "-", *arguments, given=yaml.safe_dump(values))

    def rollback(self) -> None:
        """Go back to what was before."""
        self._run("rollback")

    def test(self) -> str:
        """Run the tests of the chart; what Helm says of them, with the output of their pods."""
        return self._run("test", "--logs")

    def uninstall(self) -> None:
        """Take it away."""
        self._run("uninstall", "--ignore-not-found", "--wait")

    def _run(self, verb: str, *arguments: str, given: str = "") -> str:
        return run("helm", verb, self.name, *arguments, "--namespace", self.namespace, given=given)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.uninstall()
