"""What the progress room counts."""

from __future__ import annotations

from typing import Final

from disqued.core.telemetry.counter import Counter

LOG_ENTRIES: Final = Counter("log_entries", "Entries that workers added to progress logs of jobs at this node.")
COUNTERS: Final = (LOG_ENTRIES,)
