"""Numbers of the states of tasks on the way to their results, and which of very many are left out.

A *run* is one attempt of a task in one process. The log of a result job holds about 1,000 entries, so a task that
reports its progress more often has some reports left out: the longer it runs, the fewer are needed.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

FREE_STATES: Final = 50
"""The first states of a run are never left out."""
LATER_BY: Final = 0.02
"""The later ones are left out until the run is so much longer: the last state shown is at most 2 % of its time old."""
_MOST_RUNS: Final = 10_000
"""A process that notes states of more tasks at once begins a new run for the oldest."""


@dataclass
class _Run:
    began_ms: int
    began_s: float
    state: str = ""
    count: int = 0
    due_s: float = 0.0


class Runs:
    """The runs of one process. Threads can share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, _Run] = OrderedDict()
        self._last_ms = 0

    def note(self, task_id: str, state: str) -> tuple[int, int] | None:
        """Return when the run began, in unix milliseconds, and the number of the state; None to leave it out.

        A state with another name than the one before is never left out.
        """
        now_s = time.monotonic()
        with self._lock:
            run = self._runs.get(task_id) or self._begin(task_id, now_s)
            if run.state == state and run.count >= FREE_STATES and now_s < run.due_s:
                return None
            run.due_s = now_s + (now_s - run.began_s) * LATER_BY
            run.state = state
            run.count += 1
            return run.began_ms, run.count - 1

    def end(self, task_id: str) -> None:
        """Forget the run of a task; the next state begins a new one."""
        with self._lock:
            self._runs.pop(task_id, None)

    def _begin(self, task_id: str, now_s: float) -> _Run:
        self._last_ms = max(self._last_ms + 1, int(time.time() * 1000))
        run = self._runs[task_id] = _Run(self._last_ms, now_s)
        if len(self._runs) > _MOST_RUNS:
            self._runs.popitem(last=False)
        return run
