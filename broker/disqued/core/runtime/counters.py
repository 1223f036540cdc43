"""What the node itself counts, below all rooms."""

from __future__ import annotations

from typing import Final

from disqued.core.telemetry.counter import Counter

CONNECTIONS: Final = Counter(
    "total_connections_received", "Connections accepted.", metric="disque_connections_received_total", shown=False
)
REJECTED_CONNECTIONS: Final = Counter(
    "rejected_connections", "Connections refused because of `maxclients` or `protected-mode`.", shown=False
)
COMMANDS: Final = Counter("total_commands_processed", "Requests.", metric="", shown=False)
INPUT_BYTES: Final = Counter(
    "total_net_input_bytes", "Bytes received from clients.", metric="disque_network_received_bytes_total", shown=False
)
OUTPUT_BYTES: Final = Counter(
    "total_net_output_bytes", "Bytes sent to clients.", metric="disque_network_sent_bytes_total", shown=False
)
_CLOSED: Final = (
    "Clients disconnected by the node: because they did not read their output (`client-output-buffer-limit`), or "
    "because memory was used up."
)
CLOSED_FOR_OUTPUT: Final = Counter(
    "clients_closed_for_output",
    _CLOSED,
    metric="disque_clients_closed_total",
    labels=(("reason", "output"),),
    shown=False,
)
CLOSED_FOR_MEMORY: Final = Counter(
    "clients_closed_for_memory",
    _CLOSED,
    metric="disque_clients_closed_total",
    labels=(("reason", "memory"),),
    shown=False,
)
CLOSED_UNAUTHENTICATED: Final = Counter(
    "clients_closed_unauthenticated",
    _CLOSED,
    metric="disque_clients_closed_total",
    labels=(("reason", "unauthenticated"),),
    shown=False,
)
REQUESTS_REFUSED_UNREAD: Final = Counter(
    "requests_refused_unread",
    "Requests too big for the memory that was left, which were refused before they were read to the end.",
    shown=False,
)
JOBS_EXPIRED: Final = Counter(
    "jobs_expired",
    "Jobs dropped because their time to live was over although nobody had acknowledged them. Each holder counts its "
    "copy. At-most-once jobs that were delivered are not counted.",
    shown=False,
)
RECORDS_EXPIRED: Final = Counter(
    "expired_jobs",
    "Everything dropped because its time to live was over, acknowledgements included (`expired_jobs` of INFO).",
    metric="disque_records_expired_total",
    shown=False,
)
JOBS_EVICTED: Final = Counter(
    "evicted_jobs",
    "Jobs dropped to free memory: acknowledged ones, and delivered at-most-once jobs.",
    metric="disque_jobs_evicted_total",
    shown=False,
)
LINKS_OVERFLOWED: Final = Counter(
    "bus_links_overflowed",
    "Links dropped because too much output waited on them.",
    metric="disque_cluster_links_overflowed_total",
    shown=False,
)
LOST_BYTES: Final = Counter(
    "bus_lost_bytes",
    "Bytes written to links that closed before the network took them.",
    metric="disque_cluster_lost_bytes_total",
    shown=False,
)
LOGINS_FAILED: Final = Counter("logins_failed", "Logins with a wrong user or password.")
_REFUSED: Final = (
    "Requests refused because of the rules of their user: which commands and queues they allow, or how many "
    "commands per second."
)
REFUSED_COMMANDS: Final = Counter(
    "requests_forbidden_command", _REFUSED, metric="disque_requests_forbidden_total", labels=(("reason", "command"),)
)
REFUSED_QUEUES: Final = Counter(
    "requests_forbidden_queue", _REFUSED, metric="disque_requests_forbidden_total", labels=(("reason", "queue"),)
)
REFUSED_FOR_RATE: Final = Counter(
    "requests_forbidden_rate", _REFUSED, metric="disque_requests_forbidden_total", labels=(("reason", "rate"),)
)
AUDIT_RECORDS_LOST: Final = Counter(
    "audit_records_lost",
    "Records of the audit log that were not written, because the disk was full, failed, or was too slow.",
)
ACCESS_COUNTERS: Final = (LOGINS_FAILED, REFUSED_COMMANDS, REFUSED_QUEUES, REFUSED_FOR_RATE, AUDIT_RECORDS_LOST)
"""Of the access room."""

COUNTERS: Final = (
    CONNECTIONS,
    REJECTED_CONNECTIONS,
    COMMANDS,
    INPUT_BYTES,
    OUTPUT_BYTES,
    CLOSED_FOR_OUTPUT,
    CLOSED_FOR_MEMORY,
    CLOSED_UNAUTHENTICATED,
    REQUESTS_REFUSED_UNREAD,
    JOBS_EXPIRED,
    RECORDS_EXPIRED,
    JOBS_EVICTED,
    LINKS_OVERFLOWED,
    LOST_BYTES,
)
"""Shown by the admin room, where the original's sections of INFO have them."""

JOBS_ADDED: Final = Counter(
    "jobs_added", "Jobs added by clients of this node that got their IDs, whichever nodes keep them.", shown=False
)
"""Of the admission room; a job that waits for copies is added by the replication room."""
COPIES_REFUSED: Final = Counter(
    "copies_refused",
    "Copies that this node refused because it leaves, is short of memory, its disk fails, or the queue is paused.",
)
"""Of the replication room; a copy that is too big is refused before it is read."""
STALE_REFUSED: Final = Counter(
    "stale_refused",
    "Requests of workers refused with STALE: the job had been delivered again since the claim that they named.",
)
"""Of the delivery room; other rooms refuse such requests as well."""
