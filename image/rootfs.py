"""Makes the file system of an image: the Python that runs this, and nothing that a program in it does not need.

    python rootfs.py /rootfs
    python rootfs.py /more /usr/lib/jvm/default-java /bin/ls     only these, to be laid over the one above

What is copied: the interpreter, its standard library (as bytecode too), the shared libraries that these are linked
with, certificates and time zones; and which Debian packages all of it came from, in the place where scanners for
vulnerabilities look. What is not: a shell, a package manager, pip, and modules for screens, databases, tests and
developers.

Runs on images made from Debian, whether their Python is Debian's or was built for itself.
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
    "config-*",  # for linking with Python
    "ensurepip",
    "idlelib",
    "lib2to3",
    "pydoc_data",
    "test",
    "tests",
    "tkinter",
    "turtle*",
    "classes_nocoops.jsa",  # Java's, for more than 32 GB of memory
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
    "posix",  # the time zones once more
    "right",
)
"""Of directories, as patterns of names."""

PROMISED: Final = (
    "libdl.so.2",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
    "libresolv.so.2",
    "librt.so.1",
    "libutil.so.1",
)
"""Shared libraries that wheels may be linked with (manylinux). glibc opens libgcc_s by itself when a thread ends."""

FILES: Final = (
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/ssl/certs/ca-certificates.crt",
    "/usr/share/zoneinfo",
)
"""What programs read, if the base image has it."""

USER: Final = 10001
WRITTEN: Final = {
    "etc/passwd": f"root:x:0:0::/:/nonexistent\ndisque:x:{USER}:{USER}::/data:/nonexistent\n",
    "etc/group": f"root:x:0:\ndisque:x:{USER}:\n",
}

EMPTY: Final = {"dev": 0o755, "proc": 0o755, "run": 0o755, "sys": 0o755, "tmp": 0o1777}
"""Directories that runtimes mount on or programs expect, with their permissions."""

PACKAGES: Final = Path("/var/lib/dpkg")


class Root:
    """The file system that is made."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.copied: set[Path] = set()
        """The files and directories that were asked for, as they are called on this system."""

    def inside(self, path: Path) -> Path:
        """Where a path of this system is in the one that is made."""
        return self.path / path.relative_to("/")

    def add(self, path: Path) -> None:
        """Copy a file, or a directory without what is left out. Links on the way to it are copied as links."""
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
        """Where a path leads without links, after a copy of each link on the way."""
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
        """All machine code that was copied."""
        files = (path for path in self.path.rglob("*") if path.is_file() and not path.is_symlink())
        return sorted(path for path in files if starts_as_program(path))


def starts_as_program(path: Path) -> bool:
    """Whether a file is machine code, by its first bytes."""
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def output(*command: str) -> str:
    """What a program prints, even if it fails: dpkg does when one of many files is nobody's."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - words of this module
    return done.stdout


def linked(root: Root, program: Path, brought: set[str]) -> Iterator[Path]:
    """The shared libraries that a program is linked with, the one that loads the others among them.

    Not those that were copied with it: Java's find each other, some only once it has started.
    """
    text = output("ldd", str(program))
    for missing in re.findall(r"(\S+) => not found", text):
        if missing not in brought:
            raise SystemExit(f"{program} needs {missing}, which the base image lacks")
    for found in map(Path, re.findall(r"^\s+(?:\S+ => )?(/\S+) \(0x", text, re.MULTILINE)):
        if not found.is_relative_to(root.path):
            yield found


def promised() -> Iterator[Path]:
    """Where the loader finds the libraries of PROMISED."""
    known = output("ldconfig", "-p")
    for name in PROMISED:
        for found in re.findall(rf"^\s+{re.escape(name)} .*=> (/\S+)$", known, re.MULTILINE):
            yield Path(found)


def owners(root: Root) -> set[str]:
    """The packages that files came from; what a Python that was built for itself brought is in none."""
    files = [f"/{path.relative_to(root.path)}" for path in root.path.rglob("*") if not path.is_dir()]
    spellings = {spelling for path in files for spelling in (path, re.sub(r"^/usr(?=/lib)", "", path))}
    lines = output("dpkg", "-S", *sorted(spellings)).splitlines()
    return {package.partition(":")[0] for line in lines for package in line.rpartition(": ")[0].split(", ")}


def write_packages(root: Root) -> None:
    """Say which packages are there, one file for each, and copy their licences."""
    stanzas = (PACKAGES / "status").read_text(encoding="utf-8").strip().split("\n\n")
    known = {stanza.partition("\n")[0].removeprefix("Package: "): stanza for stanza in stanzas}
    folder = root.inside(PACKAGES / "status.d")
    folder.mkdir(parents=True)
    for package in sorted(owners(root) & known.keys()):
        (folder / package).write_text(known[package] + "\n", encoding="utf-8")
        licence = Path("/usr/share/doc", package, "copyright")
        if licence.exists():
            root.add(licence)


def to_bytecode(folder: Path, outside: Path) -> bool:
    """Compile all modules in a folder. Such bytecode does not ask for its source's date, so it can be copied."""
    return bool(
        compileall.compile_dir(
            folder, maxlevels=20, stripdir=outside, quiet=1, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH
        )
    )


def add_libraries(root: Root) -> None:
    """Copy the shared libraries of all programs that were copied."""
    programs = root.programs()
    brought = {program.name for program in programs}
    for program in programs:
        for found in linked(root, program, brought):
            root.add(found)


def add_python(root: Root) -> None:
    """The Python that runs this, and what every image has."""
    library = Path(sysconfig.get_path("stdlib"))
    root.add(Path(sys.executable))
    root.add(library)
    for path in map(Path, FILES):
        if path.exists():
            root.add(path)
    add_libraries(root)
    for found in promised():
        root.add(found)
    for name, text in WRITTEN.items():
        (root.path / name).write_text(text, encoding="utf-8")
    for name, mode in EMPTY.items():
        folder = root.path / name
        folder.mkdir(exist_ok=True)
        folder.chmod(mode)
    write_packages(root)
    if not to_bytecode(root.inside(library), root.path):
        raise SystemExit(f"Not all of {library} could be compiled")
    output("ldconfig", "-r", str(root.path))


def add_more(root: Root, paths: list[Path]) -> None:
    """Programs and folders for an image that has Python already."""
    for path in paths:
        root.add(path)
    add_libraries(root)
    write_packages(root)


def main() -> None:
    """Make the file system."""
    root, more = Root(Path(sys.argv[1])), [Path(path) for path in sys.argv[2:]]
    if more:
        add_more(root, more)
    else:
        add_python(root)


if __name__ == "__main__":
    main()
