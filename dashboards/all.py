"""The list of all dashboards."""

from __future__ import annotations

from typing import Final

from dashboards.cluster import CLUSTER
from dashboards.memory_disk import MEMORY_DISK
from dashboards.model import Board
from dashboards.operator import OPERATOR
from dashboards.ordered import ORDERED
from dashboards.overview import OVERVIEW
from dashboards.queues import QUEUES
from dashboards.slo import SLO
from dashboards.spark import SPARK

BOARDS: Final[tuple[Board, ...]] = (OVERVIEW, QUEUES, ORDERED, CLUSTER, MEMORY_DISK, OPERATOR, SLO, SPARK)
