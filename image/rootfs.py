"""Creates the root file system of an image: the Python that runs this script and its runtime dependencies.

    python rootfs.py /rootfs
    python rootfs.py /more /usr/lib/jvm/default-java /bin/ls     only these paths, as a layer on top of the one above

Copied: the interpreter, its standard library (with bytecode), the shared libraries that these link to, certificates and
time zones, and the list of their Debian packages, at the path that vulnerability scanners read. Not copied: a shell, a
package manager, pip, and modules for user interfaces, databases, tests and development.

Runs on images based on Debian, with Debian's Python or another build.
"""

from __future__ import annotations

import compileall
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Final

LEFT_OUT: Final = (
    "__pycache__",
    "site-packages",
    "dist-packages",
    "config-*",  # for programs that embed Python
    "ensurepip",
    "idlelib",
    "lib2to3",
    "pydoc_data",
    "test",
    "tests",
    "tkinter",
    "turtle*",
    "classes_nocoops.jsa",  # of Java, for heaps of more than 32 GB
    "_ctypes_test*",
    "_curses*",
    "_dbm*",
    "_gdbm*",
    "_sqlite3*",
    "_test*",
    "_tkinter*",
    "nis.*",
    "readline*",
    "xxlimited*",
    "posix",  # a copy of the time zones
    "right",
)
"""Name patterns of files and directories that are not copied."""

MANYLINUX: Final = (
    "libdl.so.2",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
    "libresolv.so.2",
    "librt.so.1",
    "libutil.so.1",
)
"""Shared libraries that wheels may link to (manylinux). glibc itself loads libgcc_s when a thread ends."""

FILES: Final = (
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/ssl/certs/ca-certificates.crt",
    "/usr/share/zoneinfo",
)
"""Files that programs read; copied if the base image has them."""

USER: Final = 10001
WRITTEN: Final = {
    "etc/passwd": f"root:x:0:0::/:/nonexistent\ndisque:x:{USER}:{USER}::/data:/nonexistent\n",
    "etc/group": f"root:x:0:\ndisque:x:{USER}:\n",
}

EMPTY: Final = {"dev": 0o755, "proc": 0o755, "run": 0o755, "sys": 0o755, "tmp": 0o1777}
"""Mount points of container runtimes and directories that programs expect, with their permissions."""

PACKAGES: Final = Path("/var/lib/dpkg")


class Root:
    """The root file system to create."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.copied: set[Path] = set()
        """The files and directories copied so far, by their paths on this system."""

    def inside(self, path: Path) -> Path:
        """Return the path in the root file system for a path of this system."""
        return self.path / path.relative_to("/")

    def add(self, path: Path) -> None:
        """Copy a file, or a directory without `LEFT_OUT`. Symbolic links on its path are copied as links."""
        real = self._follow(path)
        if real in self.copied:
            return
        self.copied.add(real)
        target = self.inside(real)
        target.parent.mkdir(parents=True, exist_ok=True)
        if real.is_dir():
            shutil.copytree(real, target, ignore=shutil.ignore_patterns(*LEFT_OUT), ignore_dangling_symlinks=True)
        else:
            shutil.copy2(real, target)

    def _follow(self, path: Path) -> Path:
        """Resolve all links of a path, and copy each of them; returns the path without links."""
        here = Path("/")
        for position, name in enumerate(path.parts[1:], start=2):
            step = here / name
            if step.is_symlink():
                leads_to = step.readlink()
                link = self.inside(step)
                link.parent.mkdir(parents=True, exist_ok=True)
                if not link.is_symlink():
                    link.symlink_to(leads_to)
                return self._follow(Path(os.path.normpath(here / leads_to), *path.parts[position:]))
            here = step
        return here

    def programs(self) -> list[Path]:
        """Return all executables and shared libraries that were copied."""
        files = (path for path in self.path.rglob("*") if path.is_file() and not path.is_symlink())
        return sorted(path for path in files if is_elf(path))


def is_elf(path: Path) -> bool:
    """Return whether a file is an ELF executable or library."""
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def output(*command: str) -> str:
    """Run a program and return its output, even if it fails: dpkg fails if one of many files is in no package."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - words of this module
    return done.stdout


def linked(root: Root, program: Path, copied: set[str]) -> Iterator[Path]:
    """Yield the shared libraries that a program links to, including the dynamic loader.

    Libraries in `copied` may be missing: those of Java find each other only at run time.
    """
    text = output("ldd", str(program))
    for missing in re.findall(r"(\S+) => not found", text):
        if missing not in copied:
            raise SystemExit(f"{program} needs {missing}, which is missing in the base image")
    for found in map(Path, re.findall(r"^\s+(?:\S+ => )?(/\S+) \(0x", text, re.MULTILINE)):
        if not found.is_relative_to(root.path):
            yield found


def manylinux() -> Iterator[Path]:
    """Yield the paths of the libraries in `MANYLINUX`."""
    known = output("ldconfig", "-p")
    for name in MANYLINUX:
        for found in re.findall(rf"^\s+{re.escape(name)} .*=> (/\S+)$", known, re.MULTILINE):
            yield Path(found)


def owners(root: Root) -> set[str]:
    """Return the Debian packages that own the copied files; files of another build of Python have no package."""
    files = [f"/{path.relative_to(root.path)}" for path in root.path.rglob("*") if not path.is_dir()]
    spellings = {spelling for path in files for spelling in (path, re.sub(r"^/usr(?=/lib)", "", path))}
    lines = output("dpkg", "-S", *sorted(spellings)).splitlines()
    return {package.partition(":")[0] for line in lines for package in line.rpartition(": ")[0].split(", ")}


def write_packages(root: Root) -> None:
    """Write a file with the metadata of each package, and copy its license."""
    stanzas = (PACKAGES / "status").read_text(encoding="utf-8").strip().split("\n\n")
    known = {stanza.partition("\n")[0].removeprefix("Package: "): stanza for stanza in stanzas}
    folder = root.inside(PACKAGES / "status.d")
    folder.mkdir(parents=True)
    for package in sorted(owners(root) & known.keys()):
        (folder / package).write_text(known[package] + "\n", encoding="utf-8")
        license_file = Path("/usr/share/doc", package, "copyright")
        if license_file.exists():
            root.add(license_file)


def to_bytecode(folder: Path, outside: Path) -> bool:
    """Compile all modules in a folder to bytecode that ignores the source's modification time, which copies change."""
    return bool(
        compileall.compile_dir(
            folder, maxlevels=20, stripdir=outside, quiet=1, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH
        )
    )


def add_libraries(root: Root) -> None:
    """Copy the shared libraries that the copied programs link to."""
    programs = root.programs()
    copied = {program.name for program in programs}
    for program in programs:
        for found in linked(root, program, copied):
            root.add(found)


def add_python(root: Root) -> None:
    """Add the Python that runs this script, and the files of every image."""
    library = Path(sysconfig.get_path("stdlib"))
    root.add(Path(sys.executable))
    root.add(library)
    for path in map(Path, FILES):
        if path.exists():
            root.add(path)
    add_libraries(root)
    for found in manylinux():
        root.add(found)
    for name, text in WRITTEN.items():
        (root.path / name).write_text(text, encoding="utf-8")
    for name, mode in EMPTY.items():
        folder = root.path / name
        folder.mkdir(exist_ok=True)
        folder.chmod(mode)
    write_packages(root)
    if not to_bytecode(root.inside(library), root.path):
        raise SystemExit(f"cannot compile all modules in {library}")
    output("ldconfig", "-r", str(root.path))


def add_more(root: Root, paths: list[Path]) -> None:
    """Add programs and folders for an image that already has Python."""
    for path in paths:
        root.add(path)
    add_libraries(root)
    write_packages(root)


def main() -> None:
    """Create the root file system."""
    root, more = Root(Path(sys.argv[1])), [Path(path) for path in sys.argv[2:]]
    if more:
        add_more(root, more)
    else:
        add_python(root)


if __name__ == "__main__":
    main()
