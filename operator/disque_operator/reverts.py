"""Which fields are changed back after each apply: by a mutating webhook, another controller, or a person.

Without this, the operator would apply the object every two seconds and nobody would know. An object whose same field
differs again after the same manifest was applied twice is applied with exponential backoff from then on, and the
planner reports the field. A changed manifest is applied at once. All this is in memory: after a restart it is learned
again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from disque_operator import names
from disque_operator.actions import Apply
from disque_operator.observed import Revert
from disque_operator.queue import Key

TOLERATED: Final = 3
"""How many times in a row a field is applied before it counts as changed back."""
FIRST_S: Final = 4.0
LONGEST_S: Final = 300.0
FORGET_S: Final = 1800.0
"""How long after an apply another one of the same field belongs to the same row."""


@dataclass
class _Applied:
    field: str
    digest: str
    times: int
    at_s: float


class Reverts:
    """Remembers what was applied. `counted` is called with cluster and kind whenever a field was changed back."""

    def __init__(self, clock: Callable[[], float], counted: Callable[[Key, str], None]) -> None:
        self._clock = clock
        self._counted = counted
        self._objects: dict[Key, dict[tuple[str, str], _Applied]] = {}

    def applied(self, key: Key, action: Apply) -> None:
        """Note that an object was applied because a field of it differed."""
        if not action.field:
            return
        kind, metadata = action.manifest["kind"], action.manifest["metadata"]
        digest = metadata["annotations"][names.APPLIED]
        objects = self._objects.setdefault(key, {})
        before = objects.get((kind, metadata["name"]))
        times = 1
        if before is not None and (before.field, before.digest) == (action.field, digest) and self._counts(before):
            times = before.times + 1
            self._counted(key, kind)
        objects[kind, metadata["name"]] = _Applied(action.field, digest, times, self._clock())

    def of(self, key: Key) -> dict[tuple[str, str], Revert]:
        """Return the fields that are changed back, by kind and name of the object."""
        return {
            name: Revert(known.field, known.digest, waits=self._clock() < known.at_s + _wait_s(known.times))
            for name, known in self._objects.get(key, {}).items()
            if known.times >= TOLERATED and self._counts(known)
        }

    def forget(self, key: Key) -> None:
        """Forget a deleted cluster."""
        self._objects.pop(key, None)

    def _counts(self, known: _Applied) -> bool:
        return self._clock() - known.at_s <= FORGET_S


def _wait_s(times: int) -> float:
    return min(LONGEST_S, FIRST_S * 2.0 ** min(times - TOLERATED, 16))
