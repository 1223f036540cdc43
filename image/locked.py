"""Installs requirements into an environment in exactly the versions and with the hashes of requirements.lock.

The lock has what developers need as well, an image must not. Which of its packages the requirements need, pip knows: it
resolves them with the lock's versions as constraints; their entries are then installed with their hashes required.

    python locked.py ENVIRONMENT/bin/python requirements.lock REQUIREMENT...

A requirement may be a wheel on this disk, also with extras (`dist/some.whl[extra]`). Needs nothing but a Python with
pip; the environment itself needs none. Where pip looks for packages is told as usual (`pip.conf`, `PIP_INDEX_URL`).
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
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def entries(lock: str) -> dict[str, list[str]]:
    """The entries of a lock by package, one for each marker: the pinned version and its hashes."""
    found: dict[str, list[str]] = defaultdict(list)
    for block in re.split(r"\n(?=\S)", lock.strip()):
        found[canonical(block.partition("==")[0])].append(block)
    return dict(found)


def pins(lock: str) -> str:
    """The same without hashes: constraints for pip, which would want hashes of the wheel on the disk too."""
    return re.sub(r"\s*\\?\n\s+--hash=\S+", "", lock)


def part(lock: str, names: Iterable[str]) -> str:
    """The entries of these packages; ends the program when the lock lacks one."""
    found = entries(lock)
    missing = sorted(set(names) - found.keys())
    if missing:
        raise SystemExit(f"requirements.lock lacks {', '.join(missing)}: run `make lock`")
    return "\n".join(block for name in sorted(names) for block in found[name]) + "\n"


def pip(python: str, *arguments: str) -> str:
    """What pip prints when it works on the environment of `python`; ends the program when it fails."""
    command = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603 - pip, our arguments
    if done.returncode:
        raise SystemExit(f"{done.stdout}pip ended with status {done.returncode}: {' '.join(command)}")
    return done.stdout


def install(python: str, lock: str, requirements: Sequence[str]) -> None:
    """Install the requirements and all that they need; nothing is compiled to bytecode yet."""
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
    """Install what the arguments ask for."""
    python, lock, *requirements = sys.argv[1:]
    install(python, Path(lock).read_text(encoding="utf-8"), requirements)


if __name__ == "__main__":
    main()
