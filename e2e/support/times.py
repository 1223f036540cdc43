"""Durations measured by the tests, as JSON; `docs/operations/kubernetes.md` shows them.

Each worker appends to its own file, so that measurements survive a crash; `collect` merges the files.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Final

from e2e.support.settings import RESULTS

LINES: Final = "times"
TIMES: Final = "times.json"


class Times:
    """Records the measurements of one worker."""

    def __init__(self, folder: Path = RESULTS) -> None:
        self._file = folder / LINES / f"{os.getpid()}.jsonl"
        self._file.parent.mkdir(parents=True, exist_ok=True)

    def note(self, name: str, value: float) -> None:
        """Record a value; its name includes the unit."""
        with self._file.open("a") as file:
            file.write(json.dumps({"name": name, "value": round(value, 2)}) + "\n")

    def since(self, name: str, begin_s: float) -> None:
        """Record the seconds since a time of the monotonic clock."""
        self.note(name, time.monotonic() - begin_s)


def clear(folder: Path = RESULTS) -> None:
    """Delete the measurements of earlier runs."""
    for file in (folder / LINES).glob("*.jsonl"):
        file.unlink()


def collect(folder: Path = RESULTS) -> dict[str, float]:
    """Write all values by name to one file, and return them; of several values of a name the highest."""
    times: dict[str, float] = {}
    for file in (folder / LINES).glob("*.jsonl"):
        for line in file.read_text().splitlines():
            entry = json.loads(line)
            times[entry["name"]] = max(entry["value"], times.get(entry["name"], 0.0))
    if times:
        (folder / TIMES).write_text(json.dumps(dict(sorted(times.items())), indent=2) + "\n")
    return times
