"""Makes an environment small, and ready for a file system that nobody can write to.

    python trim.py ENVIRONMENT

Packages bring tests, sources of what is compiled, and symbols for debuggers: nothing reads them where programs only
run. Some are large and hardly used: what nothing here imports goes too, and `imports.py` sees that it stays so.
Bytecode is made last.
"""

from __future__ import annotations

import compileall
import shutil
import subprocess
import sys
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Final

USELESS: Final = (
    "**/tests",
    "**/*.c",
    "**/*.h",
    "**/*.pxd",
    "**/*.pxi",
    "**/*.pyi",
    "**/*.pyx",
    # The classes of the Kubernetes API, 90 MB of them: the operator sends and gets JSON, through the bare client.
    "kubernetes/client/api/[!_]*",
    "kubernetes/client/models/[!_]*",
    "kubernetes/aio/client/api/[!_]*",
    "kubernetes/aio/client/models/[!_]*",
    # Colours for 500 languages: `rich` has them to show sources and Markdown, which no program here does.
    "markdown_it",
    "mdurl",
    "pygments",
)
"""Patterns of paths in `site-packages`."""


def drop(packages: Path, patterns: tuple[str, ...]) -> None:
    """Remove what the patterns name."""
    for pattern in patterns:
        for path in sorted(packages.glob(pattern)):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def strip(packages: Path) -> None:
    """Remove symbols that only debuggers read from shared libraries.

    Not from those that wheels bring beside themselves (`numpy.libs`): they were changed so that `strip` spoils them.
    """
    found = (path for path in packages.rglob("*.so*") if path.is_file())
    libraries = sorted(str(path) for path in found if not path.parent.name.endswith(".libs"))
    subprocess.run(["strip", "--strip-unneeded", *libraries], check=True)  # noqa: S603, S607 - of the builder


def to_bytecode(packages: Path) -> None:
    """Compile all modules to bytecode that does not ask for its source's date: copies may have another one."""
    if not compileall.compile_dir(packages, quiet=1, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH):
        raise SystemExit(f"Not all modules of {packages} could be compiled")


def main() -> None:
    """Trim the environment that the argument names."""
    for packages in Path(sys.argv[1], "lib").glob("python3*/site-packages"):
        drop(packages, USELESS)
        strip(packages)
        to_bytecode(packages)


if __name__ == "__main__":
    main()
