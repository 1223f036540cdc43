"""The plugin for krew: archives that run with nothing but Python, and a manifest that fits them."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from disqued import __version__
from release import krew
from release.version import ROOT

pytestmark = pytest.mark.slow

URL = "https://example.org/releases/v1"
Json = dict[str, Any]


def install_here(lib: Path, _platform: krew.Platform, _wheel: Path) -> None:
    """Install the sources, and the dependencies of this environment instead of those of a platform."""
    packages = Path(sysconfig.get_path("purelib"))
    for source in (ROOT / "broker" / "disqued", ROOT / "operator" / "disque_operator"):
        shutil.copytree(source, lib / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("hiredis", "rich", "uvloop"):
        shutil.copytree(packages / name, lib / name, ignore=shutil.ignore_patterns("__pycache__"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("krew")
    krew.build(built, URL, install_here)
    return built


@pytest.fixture(scope="module")
def manifest(folder: Path) -> Json:
    found: Json = yaml.safe_load((folder / krew.MANIFEST).read_text())
    return found


def test_manifest_has_what_krew_requires(manifest: Json) -> None:
    assert (manifest["apiVersion"], manifest["kind"]) == ("krew.googlecontainertools.github.com/v1alpha2", "Plugin")
    assert manifest["metadata"]["name"] == "disque"
    spec = manifest["spec"]
    assert re.fullmatch(r"v\d+\.\d+\.\d+", spec["version"])
    assert spec["version"] == f"v{__version__}"
    assert 0 < len(spec["shortDescription"]) <= 50, "kubectl krew search shows so much"
    assert "kubectl" not in spec["shortDescription"]
    assert spec["description"]
    assert spec["homepage"].startswith("https://")


def test_each_platform_has_its_archive_with_the_right_checksum(manifest: Json, folder: Path) -> None:
    seen = set()
    for platform in manifest["spec"]["platforms"]:
        labels = platform["selector"]["matchLabels"]
        seen.add((labels["os"], labels["arch"]))
        path = folder / platform["uri"].removeprefix(f"{URL}/")
        assert hashlib.sha256(path.read_bytes()).hexdigest() == platform["sha256"]
        with tarfile.open(path) as archive:
            assert {platform["bin"], "LICENSE"} <= set(archive.getnames())
            assert archive.getmember(platform["bin"]).mode & 0o111
            assert not [name for name in archive.getnames() if name.startswith("lib/uvloop")]
    assert seen == {("linux", "amd64"), ("linux", "arm64"), ("darwin", "amd64"), ("darwin", "arm64")}


def test_unpacked_plugin_runs_through_the_link_that_krew_makes(folder: Path, tmp_path: Path) -> None:
    archive = folder / f"kubectl-disque-{__version__}-linux-amd64.tar.gz"
    (tmp_path / "store").mkdir()
    subprocess.run(["tar", "--extract", "--file", archive, "--directory", tmp_path / "store"], check=True)
    link = tmp_path / "kubectl-disque"
    link.symlink_to(tmp_path / "store" / krew.LAUNCHER)
    done = subprocess.run([sys.executable, "-IS", link, "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, __version__ in done.stdout) == (0, True), done.stderr
