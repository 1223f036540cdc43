"""What the ordered room counts."""

from __future__ import annotations

from typing import Final

from disqued.core.telemetry.counter import Counter, Measure
from disqued.core.telemetry.histogram import PER_MS, WAITS_MS

MESSAGES_REFUSED: Final = Counter("ordered_messages_refused", "Messages about ordered queues that were malformed.")
MOVES_PARKED: Final = Counter("ordered_moves_parked", "Moves from ordered queues that were not complete after an hour.")
JOBS_ADOPTED: Final = Counter(
    "ordered_jobs_adopted",
    "Jobs that came under the name of an ordered queue as if it were none, and were moved to it.",
)
ELECTIONS: Final = Counter("ordered_elections", "Times that this node began to lead a group of an ordered queue.")
PROPOSALS: Final = Counter("ordered_proposals", "Entries that this node proposed as the leader of ordered queues.")
_DELIVERIES: Final = "disque_ordered_deliveries_total"
_DELIVERED: Final = (
    "Jobs of ordered queues that replicas here handed out: to clients of this node (local), or as the leader to a node "
    "that has no replica of the queue (remote)."
)
DELIVERED_LOCALLY: Final = Counter(
    "ordered_local_deliveries", _DELIVERED, metric=_DELIVERIES, labels=(("path", "local"),)
)
DELIVERED_REMOTELY: Final = Counter(
    "ordered_remote_deliveries", _DELIVERED, metric=_DELIVERIES, labels=(("path", "remote"),)
)
BODIES_READ: Final = Counter(
    "ordered_bodies_read", "Jobs of ordered queues whose body was not in memory when they were assigned."
)
STALE_CLAIMS: Final = Counter(
    "ordered_stale_claims", "Commands on jobs of ordered queues led here that were refused because the claim is stale."
)
WITHOUT_LEADER: Final = Counter(
    "ordered_requests_without_leader",
    "Requests of this node about ordered queues that found no leader until their deadline (NOQUORUM).",
)
RECOVERED: Final = Counter(
    "ordered_recovered",
    "Groups of ordered queues that were recovered from the replica of this node alone (CLUSTER ORDERED RECOVER).",
)
COUNTERS: Final = (
    MESSAGES_REFUSED,
    MOVES_PARKED,
    JOBS_ADOPTED,
    ELECTIONS,
    PROPOSALS,
    DELIVERED_LOCALLY,
    DELIVERED_REMOTELY,
    BODIES_READ,
    STALE_CLAIMS,
    WITHOUT_LEADER,
    RECOVERED,
)

COMMIT_TIME: Final = Measure(
    "disque_ordered_commit_seconds",
    "How long entries of ordered queues took from the proposal to the leader here until they were committed and "
    "applied; only of those that a client or a node waits for.",
    WAITS_MS,
    PER_MS,
)
REQUEST_TIME: Final = Measure(
    "disque_ordered_request_seconds",
    "How long requests of this node to leaders of ordered queues took until they were answered, here or by another "
    "node, the search for a leader included.",
    WAITS_MS,
    PER_MS,
)
MEASURES: Final = (COMMIT_TIME, REQUEST_TIME)
