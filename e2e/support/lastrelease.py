"""The last release: its sources, charts and images, to upgrade from.

Its sources come from the history of this repository, and E2E_BUILD builds its images, unless E2E_LAST_IMAGE and
E2E_LAST_OPERATOR_IMAGE name them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from e2e.support.settings import RESULTS, ROOT
from release.version import last_release

FOLDER: Final = RESULTS / "last-release"
BUILD_S: Final = 1200


@dataclass(frozen=True)
class LastRelease:
    """What users installed of the last release."""

    version: str
    image: str
    operator_image: str
    operator_chart: Path


def load() -> LastRelease:
    """Return the last release, or skip the test if it is not available here."""
    version, commit = last_release()
    sources = _sources(commit)
    return LastRelease(
        version,
        _image("E2E_LAST_IMAGE", f"localhost/disqued:{version}", "broker", sources),
        _image("E2E_LAST_OPERATOR_IMAGE", f"localhost/disque-operator:{version}", "operator", sources),
        sources / "charts" / "disque-operator",
    )


def _sources(commit: str) -> Path:
    """Return a folder with the sources of a commit."""
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode != 0:
        pytest.skip(f"the history does not contain {commit}, the last release: {archive.stderr.decode().strip()}")
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    subprocess.run(["tar", "--extract", "--directory", str(FOLDER)], input=archive.stdout, check=True)
    return FOLDER


def _image(variable: str, tag: str, target: str, sources: Path) -> str:
    """Return the image that the variable names; otherwise build it."""
    if given := os.environ.get(variable):
        return given
    build = os.environ.get("E2E_BUILD")
    if not build:
        pytest.skip(f"set {variable} to an image of the last release, or E2E_BUILD to a command that builds one")
    command = f"{build} {tag} {os.environ.get('E2E_BUILD_ARGS', '')} --target {target} {sources}"
    subprocess.run(command, shell=True, check=True, cwd=ROOT, timeout=BUILD_S, stdin=subprocess.DEVNULL)
    return tag
