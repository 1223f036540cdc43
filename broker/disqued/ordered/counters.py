"""The counters of the ordered room."""

from __future__ import annotations

from typing import Final

from disqued.core.telemetry.counter import Counter

MESSAGES_REFUSED: Final = Counter("ordered_messages_refused", "Messages about ordered queues that were malformed.")
MOVES_PARKED: Final = Counter("ordered_moves_parked", "Moves from ordered queues that were not complete after an hour.")
JOBS_ADOPTED: Final = Counter(
    "ordered_jobs_adopted",
    "Jobs that came under the name of an ordered queue as if it were none, and were moved to it.",
)
COUNTERS: Final = (MESSAGES_REFUSED, MOVES_PARKED, JOBS_ADOPTED)
