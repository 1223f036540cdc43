"""Metrics of ordered queues, and the room's fields of INFO.

A queue has its series on the node that leads it only, under the names that all queues have: `QUEUE_VALUES` says how
they are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.queues.queue import PAUSED_IN, PAUSED_OUT
from disqued.core.telemetry.metric import GAUGE, Metric, Sample, counter, gauge
from disqued.ordered.room import ordered_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from disqued.core.runtime.state import NodeState
    from disqued.core.runtime.subsystem import NodeMetric, QueueMetric, QueueSeen
    from disqued.core.telemetry.fields import Fields
    from disqued.ordered.figures import LedQueue
    from disqued.raftlog.log import RaftLog

LAG: Final = "disque_queue_replica_lag_entries"


def _of_log(read: Callable[[RaftLog], int]) -> Callable[[NodeState], int]:
    """Reads a figure about the log; 0 while there is none."""

    def value(state: NodeState) -> int:
        log = ordered_of(state).hosting.log
        return 0 if log is None else read(log)

    return value


METRICS: Final[tuple[NodeMetric, ...]] = (
    gauge(
        "disque_ordered_queues",
        "Ordered queues in the catalog, as far as this node knows.",
        lambda state: len(ordered_of(state).catalog.by_group),
    ),
    gauge(
        "disque_ordered_log_bytes",
        "Size of the files with the log of ordered queues.",
        _of_log(lambda log: int(log.disk_bytes)),
    ),
    gauge(
        "disque_ordered_log_live_bytes",
        "Bytes in these files that are still needed.",
        _of_log(lambda log: int(log.live_bytes)),
    ),
    counter(
        "disque_ordered_log_syncs_total",
        "Syncs of the log of ordered queues.",
        _of_log(lambda log: int(log.syncs)),
    ),
    counter(
        "disque_ordered_log_reads_total",
        "Reads of entries of ordered queues from the disk.",
        _of_log(lambda log: int(log.reads)),
    ),
    counter(
        "disque_ordered_log_rewrites_total",
        "Files of the log of ordered queues that were rewritten to free space.",
        _of_log(lambda log: int(log.rewritten)),
    ),
    gauge(
        "disque_ordered_writes_refused",
        "1 while the log of ordered queues cannot be written.",
        lambda state: int(bool(ordered_of(state).hosting.why_stopped)),
    ),
    gauge(
        "disque_ordered_catalog_conflict",
        "1 if another member has another catalog of ordered queues.",
        lambda state: int(bool(ordered_of(state).conflict)),
    ),
)


def _missing(_: QueueSeen) -> Iterable[Sample]:
    """A queue of jobs has no replicas of this kind."""
    return ()


QUEUE_METRICS: Final[tuple[QueueMetric, ...]] = (
    Metric(
        LAG,
        GAUGE,
        "Entries that the replica furthest behind has not confirmed. Only of ordered queues, on the node that leads "
        "the queue.",
        _missing,
    ),
)


def _paused(led: LedQueue) -> Iterator[Sample]:
    pause = int(led.machine.paused)
    yield ("in",), int(pause & PAUSED_IN != 0)
    yield ("out",), int(pause & PAUSED_OUT != 0)


def _one(read: Callable[[LedQueue, int], float]) -> Callable[[LedQueue, int], Iterable[Sample]]:
    """One sample without labels."""
    return lambda led, now_ms: (((), read(led, now_ms)),)


def _age_s(led: LedQueue, now_ms: int) -> float:
    oldest_ms = int(led.machine.oldest_ms())
    return max(now_ms - oldest_ms, 0) / 1000 if oldest_ms else 0.0


QUEUE_VALUES: Final[dict[str, Callable[[LedQueue, int], Iterable[Sample]]]] = {
    "disque_queue_jobs": _one(lambda led, _: int(led.machine.length)),
    "disque_queue_dead_jobs": _one(lambda led, _: int(led.machine.dead)),
    "disque_queue_leased_jobs": _one(lambda led, _: int(led.machine.leased)),
    "disque_queue_delayed_jobs": _one(lambda led, _: int(led.machine.delayed)),
    "disque_queue_oldest_job_age_seconds": _one(_age_s),
    "disque_queue_blocked_clients": _one(lambda led, _: int(led.credit)),
    "disque_queue_paused": lambda led, _: _paused(led),
    "disque_queue_jobs_in_total": _one(lambda led, _: int(led.machine.added)),
    "disque_queue_jobs_out_total": _one(lambda led, _: int(led.machine.delivered)),
    LAG: _one(lambda led, _: int(led.lag)),
}
"""What an ordered queue shows under the names of the metrics of queues; it has no series of the others."""


def info(state: NodeState) -> Fields:
    """The fields of INFO before the counters."""
    room = ordered_of(state)
    log = room.hosting.log
    leaders = list(room.exchange.leaders.values())
    groups = len(room.exchange.replicas)
    return [
        ("ordered_catalog", room.catalog.identity.hex() if room.has_catalog else ""),
        ("ordered_queues", len(room.catalog.by_group)),
        ("ordered_groups", groups),
        ("ordered_leaders", leaders.count(room.exchange.node_id)),
        ("ordered_groups_without_leader", groups - len(leaders) + leaders.count(b"")),
        ("ordered_log_bytes", 0 if log is None else int(log.disk_bytes)),
        ("ordered_log_live_bytes", 0 if log is None else int(log.live_bytes)),
        ("ordered_log_syncs", 0 if log is None else int(log.syncs)),
    ]
