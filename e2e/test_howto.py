"""The page that leads from nothing to a cluster: its commands are run in order, and show what stands there."""

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
NOT_HERE: Final = ("kind ", "make ")
"""What makes the Kubernetes and the images: they are there."""
ANY: Final = "…"
COMMAND_S: Final = 400


def steps() -> list[tuple[str, list[str]]]:
    """The commands of the page with what they show."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            else:
                found[-1][1].append(line)
    return found


def pattern(line: str) -> re.Pattern[str]:
    """A line as the page shows it: spaces and tabs are alike, `…` is anything."""
    words = [re.escape(word).replace(re.escape(ANY), r".*") for word in line.split()]
    return re.compile(r"\s+".join(words))


@pytest.fixture
def page_place(
    kube: Kube, operator: Json, namespaces: Callable[[], str], tmp_path: Path
) -> Iterator[tuple[Path, str, dict[str, str]]]:
    """A folder like that of the sources, a namespace that is the default one, and variables for the commands."""
    here, config = namespaces(), tmp_path / "kubeconfig"
    config.write_text(run("kubectl", "config", "view", "--raw", "--flatten"))
    run("kubectl", "--kubeconfig", str(config), "config", "set-context", "--current", "--namespace", here)
    for folder in ("charts", "manifests"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    with operators.away(kube, operator):
        yield tmp_path, here, environment(KUBECONFIG=str(config))
        run("helm", "uninstall", "disque-operator", "--namespace", here, "--ignore-not-found", "--wait")
        for manifest in operators.documents(operators.CRDS):
            kube.apply(manifest)


def words(command: str, namespace: str, settings: Settings) -> str:
    """The command for this Kubernetes: its images, and an operator that looks after the namespace of the test only."""
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


def test_the_commands_of_the_page_do_what_it_says(
    page_place: tuple[Path, str, dict[str, str]], settings: Settings
) -> None:
    folder, namespace, variables = page_place
    done = 0
    for command, shown in steps():
        if command.startswith(NOT_HERE):
            continue
        said = subprocess.run(
            ["bash", "-c", words(command, namespace, settings)],
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
        assert said.returncode == 0, (command, said.stdout, said.stderr)
        for line in shown:
            assert pattern(line).search(said.stdout), (command, line, said.stdout)
        done += 1
    assert done >= 20
