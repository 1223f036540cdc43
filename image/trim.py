"""Reduces the size of an environment, and prepares it for a read-only file system.

    python trim.py ENVIRONMENT

Removes what is not needed at run time: tests, sources of compiled modules, symbols for debuggers, and large modules
that no program here imports, which `imports.py` verifies. Then compiles all modules to bytecode.
"""

from __future__ import annotations

import compileall
import shutil
import subprocess
import sys
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Final

REMOVED: Final = (
    "**/tests",
    "**/*.c",
    "**/*.h",
    "**/*.pxd",
    "**/*.pxi",
    "**/*.pyi",
    "**/*.pyx",
    # The classes of the Kubernetes API (90 MB): the operator uses only the client, with plain JSON.
    "kubernetes/client/api/[!_]*",
    "kubernetes/client/models/[!_]*",
    "kubernetes/aio/client/api/[!_]*",
    "kubernetes/aio/client/models/[!_]*",
    # Used by `rich` to show Markdown and source code, which no program here does.
    "markdown_it",
    "mdurl",
    "pygments",
)
"""Patterns of paths in `site-packages`."""


def drop(packages: Path, patterns: tuple[str, ...]) -> None:
    """Remove the files and directories that match the patterns."""
    for pattern in patterns:
        for path in sorted(packages.glob(pattern)):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def strip(packages: Path) -> None:
    """Remove the symbols that only debuggers need from shared libraries.

    Libraries that are bundled in wheels (`numpy.libs`) are skipped: they were patched, and `strip` corrupts them.
    """
    found = (path for path in packages.rglob("*.so*") if path.is_file())
    libraries = sorted(str(path) for path in found if not path.parent.name.endswith(".libs"))
    subprocess.run(["strip", "--strip-unneeded", *libraries], check=True)  # noqa: S603, S607 - of the builder


def to_bytecode(packages: Path) -> None:
    """Compile all modules to bytecode that ignores the source's modification time, which copies change."""
    if not compileall.compile_dir(packages, quiet=1, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH):
        raise SystemExit(f"cannot compile all modules in {packages}")


def main() -> None:
    """Trim the environment on the command line."""
    for packages in Path(sys.argv[1], "lib").glob("python3*/site-packages"):
        drop(packages, REMOVED)
        strip(packages)
        to_bytecode(packages)


if __name__ == "__main__":
    main()
