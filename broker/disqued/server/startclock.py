"""The time with which a node starts: that of the wall clock, unless its files are from a later time.

A machine may start its services before its clock is synchronised. With a clock that is behind, the jobs of the file
would keep their delays and lifetimes for too long, and new jobs would have times before those of the file.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from disqued.server import logs

BEHIND_MS: Final = 60_000
"""A clock that is behind the files by less may have been set back a little meanwhile, and is used."""


def start_ms(wall_ms: int, files: Iterable[Path]) -> int:
    """The time to start with, in unix milliseconds: the last change of the latest file if the wall clock is behind."""
    changed = [(file.stat().st_mtime_ns // 1_000_000, file) for file in files if file.exists()]
    latest_ms, file = max(changed, default=(0, Path()))
    if latest_ms - wall_ms < BEHIND_MS:
        return wall_ms
    logs.write(
        "warning",
        f"The wall clock is behind the files of this node: file={file} changed={_shown(latest_ms)} "
        f"wall_clock={_shown(wall_ms)} behind_s={(latest_ms - wall_ms) // 1000}. The node starts with the time of the "
        "file. Check NTP, and restart the node when the clock is right.",
    )
    return latest_ms


def _shown(unix_ms: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(unix_ms // 1000))
