"""The list of all alerts."""

from __future__ import annotations

from typing import Final

from alerts.alert import Alert, Group
from alerts.cluster import BETWEEN
from alerts.memory_disk import MEMORY_DISK
from alerts.nodes import NODES
from alerts.operator import OPERATOR
from alerts.queues import QUEUES

GROUPS: Final[tuple[Group, ...]] = (NODES, QUEUES, BETWEEN, MEMORY_DISK, OPERATOR)
ALERTS: Final[tuple[Alert, ...]] = tuple(alert for group in GROUPS for alert in group.alerts)
