"""What the moves room counts."""

from __future__ import annotations

from typing import Final

from disqued.core.telemetry.counter import Counter

LIMIT: Final = "limit"
REJECTED: Final = "rejected"
EXPIRED: Final = "expired"
PARENT: Final = "parent"

_DEAD: Final = "Jobs that this node made dead letters, by what ended them."
DEAD_BY: Final[dict[str, Counter]] = {
    why: Counter(f"jobs_dead_{why}", _DEAD, metric="disque_jobs_dead_total", labels=(("reason", why),))
    for why in (LIMIT, REJECTED, EXPIRED, PARENT)
}
MOVED: Final = Counter("jobs_moved", "Jobs that this node moved to another queue (MOVEJOB, REDRIVE).")
COUNTERS: Final = (*DEAD_BY.values(), MOVED)
