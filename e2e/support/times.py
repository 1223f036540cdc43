"""How long things took, as JSON: what `docs/operations/kubernetes.md` shows.

Each worker of the run writes a file of its own, line by line, so that what was measured is there whatever happens
later; `collect` puts them together.
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
    """Figures of one run."""

    def __init__(self, folder: Path = RESULTS) -> None:
        self._file = folder / LINES / f"{os.getpid()}.jsonl"
        self._file.parent.mkdir(parents=True, exist_ok=True)

    def note(self, name: str, value: float) -> None:
        """Keep a figure; the unit stands in its name."""
        with self._file.open("a") as file:
            file.write(json.dumps({"name": name, "value": round(value, 2)}) + "\n")

    def since(self, name: str, begin_s: float) -> None:
        """Keep the seconds since a moment of the monotonic clock."""
        self.note(name, time.monotonic() - begin_s)


def forget(folder: Path = RESULTS) -> None:
    """Before a run: what former ones left."""
    for file in (folder / LINES).glob("*.jsonl"):
        file.unlink()


def collect(folder: Path = RESULTS) -> dict[str, float]:
    """All figures by name, in one file; of several of a name the highest."""
    times: dict[str, float] = {}
    for file in (folder / LINES).glob("*.jsonl"):
        for line in file.read_text().splitlines():
            entry = json.loads(line)
            times[entry["name"]] = max(entry["value"], times.get(entry["name"], 0.0))
    if times:
        (folder / TIMES).write_text(json.dumps(dict(sorted(times.items())), indent=2) + "\n")
    return times
