"""States that are hardly ever reached, counted to prove that the simulator reaches them."""

from __future__ import annotations

from collections import Counter

from disqued.testing.cluster import Cluster
from disqued.testing.history import History


def count_rare(cluster: Cluster, history: History) -> Counter[str]:
    """How often each was reached in one run."""
    rare: Counter[str] = Counter(history.faults)
    del cluster
    return rare
