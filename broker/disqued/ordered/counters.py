"""The counters of the ordered room."""

from __future__ import annotations

from typing import Final

from disqued.core.telemetry.counter import Counter

MESSAGES_REFUSED: Final = Counter("ordered_messages_refused", "Messages about ordered queues that were malformed.")
MOVES_PARKED: Final = Counter("ordered_moves_parked", "Moves from ordered queues that were not complete after an hour.")
COUNTERS: Final = (MESSAGES_REFUSED, MOVES_PARKED)
