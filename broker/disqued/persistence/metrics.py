"""What the node counts about its append-only file, for Prometheus. Without such a file all but the switch is 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.telemetry.metric import counter, gauge
from disqued.persistence.room import aof_of, clock_of

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState
    from disqued.core.runtime.subsystem import NodeMetric


def _total_bytes(state: NodeState) -> int:
    loader = aof_of(state).loader
    return int(loader.progress.total_bytes) if loader is not None else 0


def _loaded_bytes(state: NodeState) -> int:
    loader = aof_of(state).loader
    return int(loader.progress.loaded_bytes) if loader is not None else 0


METRICS: Final[tuple[NodeMetric, ...]] = (
    gauge(
        "disque_aof_enabled",
        "1 while changes are written to the append-only file.",
        lambda state: int(aof_of(state).file.enabled),
    ),
    gauge(
        "disque_aof_size_bytes",
        "Size of the append-only file.",
        lambda state: int(aof_of(state).file.size_bytes),
    ),
    gauge(
        "disque_aof_base_size_bytes",
        "Size of the file after it was loaded or last rewritten.",
        lambda state: int(aof_of(state).rewrite.base_bytes),
    ),
    gauge(
        "disque_aof_rewrite_in_progress",
        "1 while the file is being rewritten.",
        lambda state: int(aof_of(state).rewrite.running),
    ),
    gauge(
        "disque_aof_last_rewrite_ok",
        "0 after a rewrite that failed, until one succeeds.",
        lambda state: int(aof_of(state).rewrite.failures == 0),
    ),
    counter(
        "disque_aof_rewrites_total",
        "Number of rewrites of the file.",
        lambda state: int(aof_of(state).rewrite.succeeded),
    ),
    gauge(
        "disque_aof_last_rewrite_duration_seconds",
        "How long the last rewrite took, in whole seconds; 0 before the first.",
        lambda state: max(int(aof_of(state).rewrite.last_s), 0),
    ),
    gauge(
        "disque_aof_current_rewrite_duration_seconds",
        "How long the rewrite of the file has been running, in whole seconds; 0 if none is.",
        lambda state: max(aof_of(state).rewrite.current_s, 0),
    ),
    gauge(
        "disque_loading_total_bytes",
        "Size of the file that is being loaded; 0 when none is.",
        _total_bytes,
    ),
    gauge(
        "disque_loading_loaded_bytes",
        "How much of it was loaded.",
        _loaded_bytes,
    ),
    gauge(
        "disque_aof_failed",
        "1 while new jobs are refused because the disk does not do what it should (MISCONF).",
        lambda state: int(bool(state.write_refusal)),
    ),
    counter(
        "disque_aof_delayed_fsyncs_total",
        "Syncs that took so long that new jobs were refused meanwhile.",
        lambda state: int(aof_of(state).file.sync.delayed),
    ),
    gauge(
        "disque_aof_unwritten_bytes",
        "Records that wait to be written to the file.",
        lambda state: int(aof_of(state).file.groups.buffer_bytes),
    ),
    gauge(
        "disque_aof_unsynced_bytes",
        "Records that a loss of power would take: not written, or not synced yet.",
        lambda state: int(aof_of(state).file.unsynced_bytes),
    ),
    counter(
        "disque_aof_damaged_records_total",
        "Places of damage that were left out when files were loaded.",
        lambda state: int(aof_of(state).damaged_places),
    ),
    gauge(
        "disque_clock_offset_seconds",
        "How far the wall clock was set since the node started: positive if it is ahead of the node's time.",
        lambda state: int(clock_of(state).offset_ms) / 1000,
    ),
)
