"""The counters of the replication room."""

from __future__ import annotations

from typing import Final

from disqued.core.runtime.counters import COPIES_REFUSED
from disqued.core.telemetry.counter import Counter, Measure
from disqued.core.telemetry.histogram import PER_MS, WAITS_MS

FAILURES: Final = Counter(
    "replication_failures",
    "Jobs refused because they could not get their copies (NOREPL).",
    shown=False,
)
TIMEOUTS: Final = Counter("replication_timeouts", "Such jobs that were tried until the client's timeout.")
EXTERNAL_REPLICATIONS: Final = Counter(
    "external_replications", "New jobs that only other nodes keep, because this node leaves or is short of memory."
)
ASYNC_HELD_BACK: Final = Counter(
    "async_held_back",
    "ASYNC adds whose clients had to wait for slow links.",
    metric="disque_async_adds_held_back_total",
)
ASYNC_COPIES_MISSING: Final = Counter(
    "async_copies_missing", "Copies of ASYNC jobs that were not sent because there was no link."
)
SYNC_COPIES_MISSING: Final = Counter(
    "sync_copies_missing",
    "Copies that SYNC adds did not wait for, and that no node confirmed before their timeout.",
)
COPIES_KEPT: Final = Counter("copies_kept", "Jobs of other nodes of which this node began to keep a copy.")
COUNTERS: Final = (
    FAILURES,
    TIMEOUTS,
    EXTERNAL_REPLICATIONS,
    ASYNC_HELD_BACK,
    ASYNC_COPIES_MISSING,
    SYNC_COPIES_MISSING,
    COPIES_KEPT,
    COPIES_REFUSED,
)

DURATION: Final = Measure(
    "disque_replication_duration_seconds",
    "How long clients waited in ADDJOB for the copies of their jobs, failed adds included.",
    WAITS_MS,
    PER_MS,
)
MEASURES: Final = (DURATION,)
