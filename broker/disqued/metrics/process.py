"""Statistics of this process from /proc, with the names of prometheus-client's `ProcessCollector`, in steps.

`ProcessCollector` lists all open files at once, which takes a millisecond per thousand clients. This module reads the
number of open files (Linux 6.2 and later), or lists them in steps.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
AT_A_TIME: Final = 1000
"""Number of open files that are listed in one step."""
_USER_TICKS: Final = 11
_SYSTEM_TICKS: Final = 12
_START_TICKS: Final = 19
_VIRTUAL_BYTES: Final = 20
_RESIDENT_PAGES: Final = 21
"""Positions after the name of the program in `/proc/self/stat`."""


class Process:
    """The statistics of this process; empty on systems without /proc."""

    def __init__(self, proc: Path = PROC) -> None:
        self._stat = proc / "self" / "stat"
        self._files = proc / "self" / "fd"
        self._booted_s = _booted_s(proc)
        self.figures: dict[str, float] = {}
        """The statistics, by the name of the metric."""

    def steps(self) -> Iterator[None]:
        """Read the statistics again, in steps of a limited number of files."""
        try:
            facts = self._facts()
            count = open_files(self._files)
            if count == 0:
                for listed in list_files(self._files):
                    count = listed
                    yield
        except OSError:
            return
        self.figures = facts | {"process_open_fds": float(count)}

    def _facts(self) -> dict[str, float]:
        """Return all statistics except the number of open files."""
        parts = self._stat.read_bytes().rpartition(b")")[2].split()
        tick_s = 1 / os.sysconf("SC_CLK_TCK")
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return {
            "process_cpu_seconds_total": (int(parts[_USER_TICKS]) + int(parts[_SYSTEM_TICKS])) * tick_s,
            "process_resident_memory_bytes": float(int(parts[_RESIDENT_PAGES]) * resource.getpagesize()),
            "process_virtual_memory_bytes": float(parts[_VIRTUAL_BYTES]),
            "process_start_time_seconds": self._booted_s + int(parts[_START_TICKS]) * tick_s,
            "process_max_fds": float("inf") if most == resource.RLIM_INFINITY else float(most),
        }


def open_files(folder: Path) -> int:
    """Return the number of files in `/proc/self/fd` from the size of the directory; 0 if it is unknown."""
    return folder.stat().st_size


def list_files(folder: Path) -> Iterator[int]:
    """Count the files one by one; yields the count so far after each step, and finally the total."""
    count = -1  # excludes the open directory itself
    with os.scandir(folder) as files:
        for count, _ in enumerate(files):
            if count % AT_A_TIME == 0:
                yield count
    yield count


def _booted_s(proc: Path) -> float:
    """Return the boot time as Unix time; 0 if it is unknown."""
    try:
        lines = (proc / "stat").read_bytes().splitlines()
    except OSError:
        return 0.0
    return next((float(line.split()[1]) for line in lines if line.startswith(b"btime ")), 0.0)
