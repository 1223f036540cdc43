"""Installs requirements into an environment, with exactly the versions and hashes in requirements.lock.

The lock also contains development tools, which do not belong in an image. pip resolves the requirements with the lock's
versions as constraints; then only the entries of the resolved packages are installed, with their hashes.

    python locked.py ENVIRONMENT/bin/python requirements.lock REQUIREMENT...

A requirement may be a local wheel, also with extras (`dist/some.whl[extra]`). The Python that runs this script needs
pip; the environment does not. Configure package indexes for pip as usual (`pip.conf`, `PIP_INDEX_URL`).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def canonical(name: str) -> str:
    """Return the normalized name of a package."""
    return re.sub(r"[-_.]+", "-", name).lower()


def entries(lock: str) -> dict[str, list[str]]:
    """Return the entries of a lock by package, one for each marker: the pinned version and its hashes."""
    found: dict[str, list[str]] = defaultdict(list)
    for block in re.split(r"\n(?=\S)", lock.strip()):
        found[canonical(block.partition("==")[0])].append(block)
    return dict(found)


def pins(lock: str) -> str:
    """Return the lock without hashes, as constraints; with hashes, pip would require one for the local wheel, too."""
    return re.sub(r"\s*\\?\n\s+--hash=\S+", "", lock)


def part(lock: str, names: Iterable[str]) -> str:
    """Return the entries of these packages; exits if the lock does not contain one of them."""
    found = entries(lock)
    missing = sorted(set(names) - found.keys())
    if missing:
        raise SystemExit(f"packages missing in requirements.lock: {', '.join(missing)}; run `make lock`")
    return "\n".join(block for name in sorted(names) for block in found[name]) + "\n"


def pip(python: str, *arguments: str) -> str:
    """Run pip on the environment of `python` and return its output; exits if it fails."""
    command = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603 - pip, our arguments
    if done.returncode:
        raise SystemExit(f"{done.stdout}pip failed with status {done.returncode}: {' '.join(command)}")
    return done.stdout


def install(python: str, lock: str, requirements: Sequence[str]) -> None:
    """Install the requirements and their dependencies, without compiling them to bytecode."""
    files = [requirement.partition("[")[0] for requirement in requirements]
    wheels = [file for file in files if file.endswith(".whl")]
    with tempfile.TemporaryDirectory() as name:
        constraints, wanted = Path(name, "constraints.txt"), Path(name, "wanted.txt")
        constraints.write_text(pins(lock), encoding="utf-8")
        report: Json = json.loads(
            pip(python, "install", "--quiet", "--dry-run", "--report", "-", "-c", str(constraints), *requirements)
        )
        names = {canonical(item["metadata"]["name"]) for item in report["install"]}
        names -= {canonical(Path(file).name.partition("-")[0]) for file in wheels}
        wanted.write_text(part(lock, names), encoding="utf-8")
        pip(python, "install", "--no-deps", "--no-compile", "--require-hashes", "-r", str(wanted))
        if wheels:
            pip(python, "install", "--no-deps", "--no-compile", "--no-index", *wheels)
    pip(python, "check")


def main() -> None:
    """Install the requirements on the command line."""
    python, lock, *requirements = sys.argv[1:]
    install(python, Path(lock).read_text(encoding="utf-8"), requirements)


if __name__ == "__main__":
    main()
