"""What the rates room counts."""

from __future__ import annotations

from typing import Final

from disqued.core.telemetry.counter import Counter

TOKENS_GRANTED: Final = Counter(
    "tokens_granted", "Deliveries of queues with limits that this node allowed, as their rate home, to all nodes."
)
TOKENS_RETURNED: Final = Counter(
    "tokens_returned", "Tokens that this node gave back or let expire, because no client took a job with them."
)
LIMITED_DELIVERIES: Final = Counter(
    "limited_deliveries", "Jobs that this node delivered with a token, from queues with a rate or a cap."
)
DELIVERIES_HELD_BACK: Final = Counter(
    "deliveries_held_back", "Times that a client found jobs in a queue with limits and no token for them."
)
TOKENS_REFUSED: Final = Counter("tokens_refused", "TOKENASK and TOKENS of other nodes that were malformed.")
COUNTERS: Final = (
    TOKENS_GRANTED,
    TOKENS_RETURNED,
    LIMITED_DELIVERIES,
    DELIVERIES_HELD_BACK,
    TOKENS_REFUSED,
)
