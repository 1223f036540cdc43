"""What the counts room counts."""

from __future__ import annotations

from typing import Final

from disqued.core.telemetry.counter import Counter

PURGED: Final = Counter("jobs_purged", "Jobs that this node deleted because of a QPURGE on any node.")
COUNTERS: Final = (PURGED,)
