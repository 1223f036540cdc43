"""The uids of the dashboards, by which they lead to each other."""

from __future__ import annotations

from typing import Final

OVERVIEW: Final = "disque-overview"
QUEUES: Final = "disque-queues"
CLUSTER: Final = "disque-cluster"
MEMORY_DISK: Final = "disque-memory-disk"
OPERATOR: Final = "disque-operator"
SPARK: Final = "disque-spark"
