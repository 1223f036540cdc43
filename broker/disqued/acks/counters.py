"""What the acks room counts."""

from __future__ import annotations

from typing import Final

from disqued.core.telemetry.counter import Counter

JOBS_ACKED: Final = Counter(
    "jobs_acked", "Jobs known here that clients of this node acknowledged (ACKJOB, FASTACK).", shown=False
)
COLLECTIONS: Final = Counter(
    "ack_collections", "Attempts to find out whether all holders of an acknowledged job know that it is done."
)
DUMMY_ACKS_MADE: Final = Counter(
    "dummy_acks_made", "Acknowledgements of jobs that are not known here, kept until a holder is found."
)
DUMMY_ACKS_COLLECTED: Final = Counter("dummy_acks_collected", "Such acknowledgements that all nodes confirmed.")
DUMMY_ACKS_DROPPED: Final = Counter(
    "dummy_acks_dropped", "Such acknowledgements that were dropped, the oldest first, because there were too many."
)
ACKS_FORWARDED: Final = Counter(
    "acks_forwarded", "Acknowledgements that this node, while it leaves the cluster, only forwarded."
)
FORGOTTEN_EARLY: Final = Counter(
    "finished_jobs_forgotten_early",
    "IDs of finished jobs that this node had to forget within half a minute, because there were too many. A copy that "
    "arrives later is delivered.",
)
COUNTERS: Final = (
    JOBS_ACKED,
    COLLECTIONS,
    DUMMY_ACKS_MADE,
    DUMMY_ACKS_COLLECTED,
    DUMMY_ACKS_DROPPED,
    ACKS_FORWARDED,
    FORGOTTEN_EARLY,
)
