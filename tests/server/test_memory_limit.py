"""The memory available to a process, read from cgroup trees as inside and outside containers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from disqued.server import memorylimit

MB = 1 << 20
RAM = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
NO_LIMIT = 9223372036854771712
"""The value that version 1 shows for no limit."""


def machine(folder: Path, mounts: list[tuple[str, str, str]], groups: str, limits: dict[str, str | int]) -> Path:
    """A folder that looks like /proc/self.

    Mounts are (type, root, where), the lines of /proc/self/cgroup, and limits by file; paths are below `folder`.
    """
    proc = folder / "proc"
    proc.mkdir()
    lines = []
    for kind, root, where in mounts:
        place = str(folder / where).replace(" ", "\\040")
        options = "rw,memory" if kind == "cgroup" else "rw"
        lines.append(f"30 23 0:26 {root} {place} rw shared:9 - {kind} {kind} {options}")
    (proc / "mountinfo").write_text("\n".join(lines) + "\n")
    (proc / "cgroup").write_text(groups)
    for file, limit in limits.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{limit}\n")
    return proc


V2 = [("cgroup2", "/", "cg")]
V1 = [("tmpfs", "/", "sys"), ("cgroup", "/", "sys/memory")]


@pytest.mark.parametrize(
    ("mounts", "groups", "limits", "found_mb"),
    [
        pytest.param(V2, "0::/\n", {"cg/memory.max": 300 * MB}, 300, id="v2, a namespace of its own"),
        pytest.param(V2, "0::/a/b\n", {"cg/a/b/memory.max": 300 * MB}, 300, id="v2"),
        pytest.param(
            V2, "0::/a/b\n", {"cg/a/b/memory.max": "max", "cg/a/memory.max": 200 * MB}, 200, id="v2, set above"
        ),
        pytest.param(
            V2, "0::/a/b\n", {"cg/a/b/memory.max": 300 * MB, "cg/a/memory.max": 200 * MB}, 200, id="v2, lower above"
        ),
        pytest.param([("cgroup2", "/pod", "cg")], "0::/pod/x\n", {"cg/x/memory.max": 90 * MB}, 90, id="v2, a subtree"),
        pytest.param([("cgroup2", "/pod/x", "cg")], "0::/pod/x\n", {"cg/memory.max": 90 * MB}, 90, id="v2, its group"),
        pytest.param(
            [("cgroup2", "/", "cg")], "0::/../../other\n", {"cg/memory.max": 90 * MB}, 90, id="v2, outside of its view"
        ),
        pytest.param([("cgroup2", "/", "my cg")], "0::/\n", {"my cg/memory.max": 80 * MB}, 80, id="a blank"),
        pytest.param(
            V1,
            "4:memory:/docker/1\n1:cpu:/\n",
            {"sys/memory/docker/1/memory.limit_in_bytes": 70 * MB, "sys/memory/memory.limit_in_bytes": NO_LIMIT},
            70,
            id="v1",
        ),
        pytest.param(
            [("cgroup", "/docker/1", "sys/memory")],
            "4:cpu,memory:/docker/1\n",
            {"sys/memory/memory.limit_in_bytes": 60 * MB},
            60,
            id="v1, in a container",
        ),
        pytest.param(
            [*V1, ("cgroup2", "/", "sys/unified")],
            "4:memory:/a\n0::/\n",
            {"sys/memory/a/memory.limit_in_bytes": 50 * MB},
            50,
            id="both",
        ),
    ],
)
def test_the_lowest_limit_counts(
    tmp_path: Path, mounts: list[tuple[str, str, str]], groups: str, limits: dict[str, str | int], found_mb: int
) -> None:
    limit = memorylimit.find(machine(tmp_path, mounts, groups, limits))
    assert (limit.size_bytes, limit.source) == (found_mb * MB, "cgroup")


@pytest.mark.parametrize(
    ("mounts", "groups", "limits"),
    [
        pytest.param(V2, "0::/a\n", {"cg/a/memory.max": "max"}, id="v2 without a limit"),
        pytest.param(V1, "4:memory:/\n", {"sys/memory/memory.limit_in_bytes": NO_LIMIT}, id="v1 without a limit"),
        pytest.param(V2, "0::/\n", {"cg/memory.max": RAM * 2}, id="more than there is"),
        pytest.param([], "", {}, id="no cgroups"),
    ],
)
def test_no_limit_means_the_machines_memory(
    tmp_path: Path, mounts: list[tuple[str, str, str]], groups: str, limits: dict[str, str | int]
) -> None:
    limit = memorylimit.find(machine(tmp_path, mounts, groups, limits))
    assert (limit.size_bytes, limit.source) == (RAM, "machine")


def test_unreadable_limits_mean_the_machines_memory(tmp_path: Path) -> None:
    assert memorylimit.find(tmp_path).source == "machine"


FILL_AND_FREE = """
from disqued.server import allocator

allocator.configure()
before = allocator.resident_bytes()
kept = [bytes(20_000) for _ in range(4000)]
full = allocator.resident_bytes()
del kept[: len(kept) - 1]  # what is at the end keeps the rest from going by itself
allocator.release()
print(before, full, allocator.resident_bytes())
"""


def test_freed_memory_is_returned_to_the_system() -> None:
    """In its own process, since memory freed by other tests would be reused."""
    shown = subprocess.run([sys.executable, "-c", FILL_AND_FREE], check=True, capture_output=True).stdout
    before, full, after = map(int, shown.split())
    assert full - before > 60 * MB
    assert after - before < 20 * MB
