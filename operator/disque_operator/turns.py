"""Turns: the clusters of one operator are updated one after another, in the order of namespace and name.

Only the operator that holds the Lease makes rounds, so the turn is kept in its memory. It is rebuilt from the rounds of
the next holder: a cluster whose update was started says so in its StatefulSet. Until every known cluster had a round,
no update starts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from disque_operator.decisions import Turn
from disque_operator.queue import Key


class Turns:
    """The order in which clusters are updated. `known` returns the keys of all clusters of the operator."""

    def __init__(self, known: Callable[[], Collection[Key]]) -> None:
        self._known = known
        self._said: dict[Key, Turn] = {}

    def ahead_of(self, key: Key) -> str:
        """Return who must be updated before this cluster; empty if it may be updated now."""
        others = {other: turn for other, turn in self._said.items() if other != key}
        first = [other for other, turn in others.items() if turn == "taken"]
        first += sorted(other for other, turn in others.items() if turn == "wanted" and other < key)
        unknown = sorted({*self._known()} - {*self._said, key})
        return next(("/".join(other) for other in (*first, *unknown)), "")

    def report(self, key: Key, turn: Turn) -> None:
        """Note what a round decided about a cluster."""
        self._said[key] = turn

    def failed(self, key: Key) -> None:
        """Note a round that decided nothing: what was known of the cluster still counts."""
        self._said.setdefault(key, "none")

    def forget(self, key: Key) -> None:
        """Forget a cluster that does not exist any more."""
        self._said.pop(key, None)

    def reset(self) -> None:
        """Forget everything: another operator may have acted."""
        self._said.clear()
