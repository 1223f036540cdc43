"""The uids of the dashboards, used in links."""

from __future__ import annotations

from typing import Final

OVERVIEW: Final = "disque-overview"
QUEUES: Final = "disque-queues"
ORDERED: Final = "disque-ordered"
CLUSTER: Final = "disque-cluster"
MEMORY_DISK: Final = "disque-memory-disk"
OPERATOR: Final = "disque-operator"
SLO: Final = "disque-slo"
SPARK: Final = "disque-spark"
