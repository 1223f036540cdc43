"""What the system says about this process: the figures and names of prometheus-client's `ProcessCollector`, in steps.

That one lists all open files at once, which takes a millisecond for each thousand clients. Here the system is asked how
many there are (Linux 6.2 and later knows), and otherwise they are listed a few at a time.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
AT_A_TIME: Final = 1000
"""Open files that are listed without a break."""
_USER_TICKS: Final = 11
_SYSTEM_TICKS: Final = 12
_START_TICKS: Final = 19
_VIRTUAL_BYTES: Final = 20
_RESIDENT_PAGES: Final = 21
"""Where they stand behind the name of the program in `/proc/self/stat`."""


class Process:
    """One process as /proc shows it; figures are missing where there is no such folder."""

    def __init__(self, proc: Path = PROC) -> None:
        self._stat = proc / "self" / "stat"
        self._files = proc / "self" / "fd"
        self._booted_s = _booted_s(proc)
        self.figures: dict[str, float] = {}
        """By the names that Prometheus knows them by."""

    def steps(self) -> Iterator[None]:
        """Look anew, with a break after each few files that are listed."""
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
        """All but the number of files."""
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
    """How many files stand in `/proc/self/fd`, as the folder itself says; 0 when it does not know."""
    return folder.stat().st_size


def list_files(folder: Path) -> Iterator[int]:
    """Count them one by one: how many there were until now, after each few, and at last how many there are."""
    count = -1  # the folder is open itself
    with os.scandir(folder) as files:
        for count, _ in enumerate(files):
            if count % AT_A_TIME == 0:
                yield count
    yield count


def _booted_s(proc: Path) -> float:
    """When the system started, as unix time; 0 when nobody says so."""
    try:
        lines = (proc / "stat").read_bytes().splitlines()
    except OSError:
        return 0.0
    return next((float(line.split()[1]) for line in lines if line.startswith(b"btime ")), 0.0)
