"""The memory available to this process: the limit of its cgroup, as in a container, or the machine's RAM.

A process is in one group of each hierarchy (/proc/self/cgroup). Every parent group may have a limit too, and the lowest
one applies. Version 2 has the file `memory.max`, version 1 `memory.limit_in_bytes` with a number near 2^63 if there is
no limit. /proc/self/mountinfo tells where the hierarchy is mounted. In a container that is often only the subtree of
its own group; the path of the group then does not exist below the mount, and the mount itself is the group.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from disqued.core.host.host import MemoryLimit

_PROC: Final = Path("/proc/self")
_FILES: Final = {"cgroup2": "memory.max", "cgroup": "memory.limit_in_bytes"}
"""The file with the limit, by file system type."""


def find(proc: Path = _PROC) -> MemoryLimit:
    """The lowest limit that applies to this process."""
    machine_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limits = _group_limits(proc)
    except (OSError, ValueError):  # not Linux, or not accessible
        limits = []
    lowest_bytes = min(limits, default=machine_bytes)
    if lowest_bytes < machine_bytes:
        return MemoryLimit(lowest_bytes, "cgroup")
    return MemoryLimit(machine_bytes, "machine")


def _group_limits(proc: Path) -> list[int]:
    """The limits of the groups of this process and of their parents."""
    limits: list[int] = []
    for kind, root, mount in _mounts(proc):
        file = _FILES[kind]
        folder = mount / _path_below(root, _group(proc, kind))
        while folder.is_relative_to(mount):
            limits += _read(folder / file)
            folder = folder.parent
    return limits


def _mounts(proc: Path) -> list[tuple[str, str, Path]]:
    """The hierarchies that can limit memory: type, mounted group, and mount point."""
    found: list[tuple[str, str, Path]] = []
    for line in (proc / "mountinfo").read_text().splitlines():
        before, _, behind = line.partition(" - ")
        words, types = before.split(), behind.split()
        if len(words) < 5 or len(types) < 3:
            continue
        kind, options = types[0], types[-1]
        if kind == "cgroup2" or (kind == "cgroup" and "memory" in options.split(",")):
            found.append((kind, _unescape(words[3]), Path(_unescape(words[4]))))
    return found


def _unescape(path: str) -> str:
    """Decode a path of mountinfo, in which blanks and similar characters are octal numbers."""
    return path.encode("latin-1", "replace").decode("unicode_escape")


def _group(proc: Path, kind: str) -> str:
    """This process's group in a hierarchy. Lines are `number:controllers:path`, without controllers in version 2."""
    for line in (proc / "cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if (kind == "cgroup2" and not controllers) or (kind == "cgroup" and "memory" in controllers.split(",")):
            return path
    return "/"


def _path_below(root: str, group: str) -> str:
    """The path of the group below a mount of `root`; empty, the mount itself, if it is not below."""
    if group == root:
        return ""
    below = group.removeprefix(root.rstrip("/") + "/")
    return "" if below == group or ".." in below.split("/") else below


def _read(path: Path) -> list[int]:
    """The limit in a file, if there is one."""
    try:
        text = path.read_text().strip()
    except OSError:  # the root group has no such file
        return []
    return [int(text)] if text.isdigit() else []
