"""What the node counts about copies of jobs, for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.telemetry.metric import counter, gauge, histogram
from disqued.errors import NotReplicated

if TYPE_CHECKING:
    from disqued.core.runtime.subsystem import NodeMetric

_NOREPL: Final = NotReplicated().code

METRICS: Final[tuple[NodeMetric, ...]] = (
    histogram(
        "disque_replication_duration_seconds",
        "How long clients waited in ADDJOB for the copies of their jobs, with those that waited in vain.",
        lambda state: state.stats.replication_ms,
    ),
    counter(
        "disque_replication_failures_total",
        "Jobs that were refused because they could not get their copies (NOREPL).",
        lambda state: state.stats.errors[_NOREPL],
    ),
    counter(
        "disque_replication_timeouts_total",
        "Those among them that were tried until the client's time was over.",
        lambda state: int(state.stats.replication_timeouts),
    ),
    gauge(
        "disque_jobs_waiting_for_copies",
        "New jobs whose clients wait for enough nodes to have copies.",
        lambda state: len(state.waits_for_copies),
    ),
    counter(
        "disque_external_replications_total",
        "New jobs that this node had others keep, because it leaves or is short of memory.",
        lambda state: int(state.stats.external_replications),
    ),
    counter(
        "disque_async_adds_held_back_total",
        "ASYNC adds whose clients had to wait for slow links.",
        lambda state: int(state.stats.async_held_back),
    ),
    counter(
        "disque_async_copies_missing_total",
        "Copies of ASYNC jobs that were not sent, because there was no link to send them on.",
        lambda state: int(state.stats.async_copies_missing),
    ),
    counter(
        "disque_copies_kept_total",
        "Jobs of other nodes of which this one keeps a copy since.",
        lambda state: int(state.stats.copies_kept),
    ),
    counter(
        "disque_copies_refused_total",
        "Copies that this node would not keep: it leaves, is short of memory, has a disk that fails, or the queue is "
        "paused.",
        lambda state: int(state.stats.copies_refused),
    ),
)
