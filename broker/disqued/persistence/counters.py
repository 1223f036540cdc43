"""What the persistence room counts."""

from __future__ import annotations

from typing import Final

from disqued.core.telemetry.counter import Measure
from disqued.core.telemetry.histogram import PER_MS, WAITS_MS

FSYNC_DURATION: Final = Measure(
    "disque_aof_fsync_duration_seconds", "How long it took to sync the append-only file (fsync).", WAITS_MS, PER_MS
)
MEASURES: Final = (FSYNC_DURATION,)
