"""Runs the commands of docs/howto/kubernetes.md in order, and compares their output with the page."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from e2e.support import operators
from e2e.support.helm import run
from e2e.support.kube import Json, Kube
from e2e.support.plugin import environment
from e2e.support.settings import ROOT, Settings

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(
        not (shutil.which("helm") and shutil.which("kubectl")), reason="helm or kubectl is not installed"
    ),
]

PAGE: Final = (ROOT / "docs" / "howto" / "kubernetes.md").read_text(encoding="utf-8")
SKIPPED: Final = ("kind ", "make ")
"""Commands that create the Kubernetes cluster and the images, which exist already."""
ANY: Final = "…"
COMMAND_S: Final = 400


def steps() -> list[tuple[str, list[str]]]:
    """Return the commands of the page with the lines of their output.

    Indented ones are left out: they are in lists of alternatives, and need other software.
    """
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            else:
                found[-1][1].append(line)
    return found


def pattern(line: str) -> re.Pattern[str]:
    """Return a pattern for a line of output: any white space matches, and `…` stands for any text."""
    words = [re.escape(word).replace(re.escape(ANY), r".*") for word in line.split()]
    return re.compile(r"\s+".join(words))


@pytest.fixture
def workspace(
    kube: Kube, operator: Json, namespaces: Callable[[], str], tmp_path: Path
) -> Iterator[tuple[Path, str, dict[str, str]]]:
    """A folder with charts and manifests, the default namespace, and environment variables for the commands."""
    here, config = namespaces(), tmp_path / "kubeconfig"
    config.write_text(run("kubectl", "config", "view", "--raw", "--flatten"))
    run("kubectl", "--kubeconfig", str(config), "config", "set-context", "--current", "--namespace", here)
    for folder in ("charts", "manifests"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    with operators.stopped(kube, operator):
        yield tmp_path, here, environment(KUBECONFIG=str(config))
        run("helm", "uninstall", "disque-operator", "--namespace", here, "--ignore-not-found", "--wait")
        for manifest in operators.documents(operators.CRDS):
            kube.apply(manifest)


def words(command: str, namespace: str, settings: Settings) -> str:
    """Adapt a command to the test: its images, and an operator that watches only the namespace of the test."""
    broker, operator = (image.rpartition(":") for image in (settings.image, settings.operator_image))
    values = (
        f"image.repository={operator[0]},image.tag={operator[2]},"
        f"brokerImage.repository={broker[0]},brokerImage.tag={broker[2]},watch.namespaces={{{namespace}}}"
    )
    for there, here in (
        ("--namespace disque-system --create-namespace", f"--namespace {namespace} --take-ownership"),
        ("image.tag=dev,brokerImage.tag=dev", values),
        ("disqued:dev2", settings.next_image),
    ):
        command = command.replace(there, here)
    return command


def test_commands_of_the_page_print_what_it_shows(
    workspace: tuple[Path, str, dict[str, str]], settings: Settings
) -> None:
    folder, namespace, variables = workspace
    done = 0
    for command, shown in steps():
        if command.startswith(SKIPPED):
            continue
        result = subprocess.run(
            ["bash", "-c", words(command, namespace, settings)],
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
        assert result.returncode == 0, (command, result.stdout, result.stderr)
        for line in shown:
            assert pattern(line).search(result.stdout), (command, line, result.stdout)
        done += 1
    assert done >= 20
