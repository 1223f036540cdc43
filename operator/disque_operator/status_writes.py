"""When a status is written, and how a failed round shows in it.

Changes of texts are written at once. Counters are written at most every five minutes, or every two seconds during a
drain; memory only if it changed considerably. The status of an idle cluster is never written. Metrics of the brokers
show counters at any time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from disque_operator.apivalues import Json, condition_of

_COUNTS: Final = frozenset(
    {
        "jobs",
        "queued",
        "queues",
        "registered",
        "jobsLeft",
        "orderedReplicasLeft",
        "rate",
        "secondsLeft",
        "secondsElapsed",
    }
)
_MEMORY: Final = frozenset({"usedMemory"})
_MEMORY_SHARE: Final = 0.1
_MEMORY_LEAST: Final = 4 << 20
"""Smaller changes are not written: an empty broker uses so little that every connection matters."""
_CLOCK: Final = "secondsElapsed"
"""Changes by itself, so it is no reason to write the status of a stalled drain."""
COUNTERS_S: Final = 300.0
DRAIN_S: Final = 2.0
FAILURE: Final = "ReconcileSuccess"


def is_worth_writing(old: Json, new: Json, since_s: float) -> bool:
    """Return whether to write a status. `since_s` is the time since the last write, in seconds."""
    if _without_counters(old) != _without_counters(new):
        return True
    if since_s < (DRAIN_S if new.get("drain") else COUNTERS_S):
        return False
    before, after = dict(_counters(old)), dict(_counters(new))
    return any(_moved(path[-1], before.get(path, 0), value) for path, value in after.items() if path[-1] != _CLOCK)


def _moved(name: str, before: float, after: float) -> bool:
    slack = max(_MEMORY_LEAST, _MEMORY_SHARE * max(before, after)) if name in _MEMORY else 0.0
    return abs(after - before) > slack


def _without_counters(value: Any) -> Any:
    """Return the status without counters."""
    if isinstance(value, dict):
        return {key: _without_counters(item) for key, item in value.items() if not _is_counter(key, item)}
    if isinstance(value, list | tuple):
        return [_without_counters(item) for item in value]
    return value


def _counters(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    if isinstance(value, dict):
        for key, item in value.items():
            if _is_counter(key, item):
                yield (*path, key), item
            else:
                yield from _counters(item, (*path, key))
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _counters(item, (*path, str(number)))


def _is_counter(key: str, value: Any) -> bool:
    return key in _COUNTS | _MEMORY and isinstance(value, int | float)


def failed(status: Json, old: Json, reason: str, message: str, generation: int, now: str) -> Json:
    """Return a status that reports a failed round. `now` is a timestamp."""
    conditions: list[Json] = status.get("conditions") or []
    before = condition_of(old, FAILURE)
    entry = {
        "type": FAILURE,
        "status": "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": before["lastTransitionTime"] if before.get("status") == "False" else now,
        "observedGeneration": generation,
    }
    return status | {"conditions": [*(item for item in conditions if item.get("type") != FAILURE), entry]}
