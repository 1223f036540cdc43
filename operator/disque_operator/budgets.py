"""PodDisruptionBudgets of others. No watch reports them, and a budget for the pods of a cluster changes what it needs.

A watch of all budgets would report each eviction in Kubernetes. A list of their generations is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from disque_operator.kube import Kube
from disque_operator.queue import Key


class BudgetTracker:
    """Compares lists of all budgets. `stale` is called with each of the `known` clusters whose namespace differs.

    The operator's own budgets do not count: they have the names of their clusters, and a watch reports them.
    """

    def __init__(self, kube: Kube, known: Callable[[], Collection[Key]], stale: Callable[[Key], None]) -> None:
        self._kube = kube
        self._known = known
        self._stale = stale
        self._listed: set[tuple[Key, str, int]] = set()
        """Namespace and name, UID, and generation of each budget."""

    async def list(self, namespaces: Iterable[str | None]) -> None:
        """List the budgets in these namespaces; None for all."""
        present: set[tuple[Key, str, int]] = set()
        for namespace in namespaces:
            for item in await self._kube.list("PodDisruptionBudget", namespace, only_metadata=True):
                metadata = item["metadata"]
                key = (metadata["namespace"], metadata["name"])
                present.add((key, metadata["uid"], metadata.get("generation") or 0))
        known = set(self._known())
        changed = {key[0] for key, _, _ in present ^ self._listed if key not in known}
        self._listed = present
        for key in known:
            if key[0] in changed:
                self._stale(key)
