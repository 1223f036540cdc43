"""Build `kubectl disque` for krew: one archive per platform, and the manifest of the plugin.

    python -m release.krew dist https://example.org/releases/v0.2.0

The archive needs only Python 3.11 or newer. The decoder of replies is compiled, so an archive has it for each supported
version of Python; their files have different names. All versions are those of `requirements.lock`.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

from release import archive
from release.version import ROOT, current

PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
COMPILED: Final = "hiredis"
"""The only dependency of the plugin that differs between versions of Python."""
UNUSED: Final = ("bin", "uvloop", "uvloop-*")
"""What the plugin does not use: commands, and the event loop of the server."""
LAUNCHER: Final = "kubectl-disque"
MANIFEST: Final = "disque.yaml"
_LAUNCHER_TEXT: Final = '''\
#!/usr/bin/env python3
"""Start `kubectl disque` with the packages beside this file."""

import sys

if sys.version_info < (3, 11):
    sys.exit(f"kubectl disque needs Python 3.11 or newer, and python3 is {sys.version.split()[0]}")

from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "lib"))

from disque_operator.kubectl.main import main

sys.exit(main())
'''


@dataclass(frozen=True)
class Platform:
    """A platform as krew names it, and the tags of its wheels."""

    os: str
    arch: str
    wheels: tuple[str, ...]


PLATFORMS: Final = (
    Platform("linux", "amd64", ("manylinux2014_x86_64", "manylinux_2_17_x86_64", "manylinux_2_28_x86_64")),
    Platform("linux", "arm64", ("manylinux2014_aarch64", "manylinux_2_17_aarch64", "manylinux_2_28_aarch64")),
    Platform("darwin", "amd64", ("macosx_10_15_x86_64", "macosx_11_0_x86_64")),
    Platform("darwin", "arm64", ("macosx_11_0_arm64",)),
)

Installer: TypeAlias = Callable[[Path, Platform, Path], None]
"""Installs the package in a folder for a platform, from a wheel."""


def build(folder: Path, base_url: str, install: Installer | None = None) -> list[Path]:
    """Build archives and manifest in a folder that has the wheel of this version, and return them.

    Args:
        folder: The folder.
        base_url: Where the files of the folder can be downloaded.
        install: Installs the packages; by default from the package registry.
    """
    wheel = folder / f"disqued-{current()}-py3-none-any.whl"
    archives: dict[Platform, Path] = {}
    for platform in PLATFORMS:
        with tempfile.TemporaryDirectory() as scratch:
            content = Path(scratch)
            (install or install_wheels)(content / "lib", platform, wheel)
            for pattern in UNUSED:
                for path in (content / "lib").glob(pattern):
                    shutil.rmtree(path)
            shutil.copy(ROOT / "LICENSE", content)
            (content / LAUNCHER).write_text(_LAUNCHER_TEXT, encoding="utf-8")
            archives[platform] = _archive(content, folder, platform)
    manifest = folder / MANIFEST
    manifest.write_text(yaml.safe_dump(plugin(archives, base_url), sort_keys=False, width=120), encoding="utf-8")
    return [*archives.values(), manifest]


def plugin(archives: dict[Platform, Path], base_url: str) -> dict[str, Any]:
    """Return the manifest of the plugin."""
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "disque"},
        "spec": {
            "version": f"v{current()}",
            "homepage": base_url,
            "shortDescription": "Show and operate clusters of Disque brokers",
            "description": "Shows members, queues and jobs of DisqueClusters, scales and restarts them, drains members "
            "before maintenance, and collects diagnostics without passwords.",
            "caveats": "Needs Python 3.11 or newer as python3.",
            "platforms": [
                {
                    "selector": {"matchLabels": {"os": platform.os, "arch": platform.arch}},
                    "uri": f"{base_url}/{path.name}",
                    "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
                    "bin": LAUNCHER,
                }
                for platform, path in archives.items()
            ],
        },
    }


def install_wheels(lib: Path, platform: Platform, wheel: Path) -> None:
    """Install the package and its dependencies for a platform and all supported versions of Python."""
    pins = re.findall(r"^([\w.-]+==[^ ;]+)", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)
    with tempfile.TemporaryDirectory() as scratch:
        constraints = Path(scratch) / "constraints.txt"
        constraints.write_text("\n".join(pins), encoding="utf-8")
        _pip(lib, platform, PYTHONS[0], "--constraint", str(constraints), f"{wheel}[cli]")
        [compiled] = [pin for pin in pins if pin.startswith(f"{COMPILED}==")]
        for python in PYTHONS[1:]:
            other = Path(scratch) / python
            _pip(other, platform, python, "--no-deps", compiled)
            for path in (other / COMPILED).glob("*.so"):
                shutil.copy(path, lib / COMPILED)


def _pip(target: Path, platform: Platform, python: str, *words: str) -> None:
    tags = [word for tag in platform.wheels for word in ("--platform", tag)]
    options = ("--quiet", "--no-compile", "--only-binary", ":all:", "--python-version", python, *tags)
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(target), *words]
    subprocess.run(command, check=True)


def _archive(content: Path, folder: Path, platform: Platform) -> Path:
    path = folder / f"{LAUNCHER}-{current()}-{platform.os}-{platform.arch}.tar.gz"
    found = sorted(one for one in content.rglob("*") if one.is_file())
    archive.write(path, {str(one.relative_to(content)): one.read_bytes() for one in found}, {LAUNCHER})
    return path


def main() -> None:
    """Run the command."""
    folder, base_url = sys.argv[1:]
    for path in build(Path(folder), base_url.rstrip("/")):
        print(path)


if __name__ == "__main__":
    main()
