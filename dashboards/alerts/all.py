"""The list of all alerts."""

from __future__ import annotations

from typing import Final

from dashboards.alerts.alert import Alert, Group
from dashboards.alerts.cluster import BETWEEN
from dashboards.alerts.memory_disk import MEMORY_DISK
from dashboards.alerts.nodes import NODES
from dashboards.alerts.operator import OPERATOR
from dashboards.alerts.ordered import ORDERED
from dashboards.alerts.queues import QUEUES
from dashboards.alerts.record import Record
from dashboards.alerts.slo import SLO

GROUPS: Final[tuple[Group, ...]] = (NODES, QUEUES, ORDERED, BETWEEN, MEMORY_DISK, OPERATOR, SLO)
ALERTS: Final[tuple[Alert, ...]] = tuple(alert for group in GROUPS for alert in group.alerts)
RECORDS: Final[tuple[Record, ...]] = tuple(record for group in GROUPS for record in group.records)
