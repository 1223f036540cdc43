"""When a status is written, and how a failure shows in it.

What a person would call a change is written at once. Figures that merely move, of a cluster at work, are written twice
a minute at most, memory only when it moved a good deal; a cluster at rest writes nothing. A drain shows its progress.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from disque_operator.apivalues import Json

_COUNTS: Final = frozenset(
    {"jobs", "queued", "queues", "registered", "jobsLeft", "rate", "secondsLeft", "secondsElapsed"}
)
_MEMORY: Final = frozenset({"usedMemory"})
_MEMORY_SHARE: Final = 0.1
_MEMORY_LEAST: Final = 4 << 20
"""An empty broker uses little, and a tenth more with each client that looks in."""
_CLOCK: Final = "secondsElapsed"
"""Moves by itself: a drain that stands still says so once."""
FIGURES_S: Final = 30.0
DRAIN_S: Final = 2.0
FAILURE: Final = "ReconcileSuccess"


def is_worth_writing(old: Json, new: Json, since_s: float) -> bool:
    """Whether a status is to be written over another one; `since_s` is how long ago the last one was written."""
    if _words(old) != _words(new):
        return True
    if since_s < (DRAIN_S if new.get("drain") else FIGURES_S):
        return False
    before, after = dict(_figures(old)), dict(_figures(new))
    return any(_moved(path[-1], before.get(path, 0), value) for path, value in after.items() if path[-1] != _CLOCK)


def _moved(name: str, before: float, after: float) -> bool:
    slack = max(_MEMORY_LEAST, _MEMORY_SHARE * max(before, after)) if name in _MEMORY else 0.0
    return abs(after - before) > slack


def _words(value: Any) -> Any:
    """All but the figures."""
    if isinstance(value, dict):
        return {key: _words(item) for key, item in value.items() if not _is_figure(key, item)}
    if isinstance(value, list | tuple):
        return [_words(item) for item in value]
    return value


def _figures(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    if isinstance(value, dict):
        for key, item in value.items():
            if _is_figure(key, item):
                yield (*path, key), item
            else:
                yield from _figures(item, (*path, key))
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _figures(item, (*path, str(number)))


def _is_figure(key: str, value: Any) -> bool:
    return key in _COUNTS | _MEMORY and isinstance(value, int | float)


def failed(status: Json, old: Json, reason: str, message: str, generation: int, now: str) -> Json:
    """A status that says that the last round failed; `now` is a time as Kubernetes writes it."""
    conditions: list[Json] = status.get("conditions") or []
    before = condition(old, FAILURE)
    entry = {
        "type": FAILURE,
        "status": "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": before["lastTransitionTime"] if before.get("status") == "False" else now,
        "observedGeneration": generation,
    }
    return status | {"conditions": [*(item for item in conditions if item.get("type") != FAILURE), entry]}


def condition(status: Json, kind: str) -> Json:
    """One of its conditions; empty when it has none of this type."""
    conditions: list[Json] = status.get("conditions") or []
    return next((item for item in conditions if item.get("type") == kind), {})
