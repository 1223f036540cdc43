"""Metrics of clients, commands and memory, which INFO shows too."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from disqued import __version__
from disqued.build import FLAVOUR
from disqued.core.telemetry.metric import COUNTER, GAUGE, HISTOGRAM, Metric, Sample, gauge

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState
    from disqued.core.runtime.subsystem import NodeMetric

REFUSALS: Final = {"memory": "OOM", "disk": "MISCONF", "leaving": "LEAVING", "loading": "LOADING"}
"""The reasons for which a node refuses requests, and the codes of the errors."""


def _build(_state: NodeState) -> Iterator[Sample]:
    yield ((__version__, FLAVOUR, platform.python_version()), 1)


def _commands(state: NodeState) -> Iterator[Sample]:
    for entry in state.command_entries:
        if entry.done or entry.failed:
            name = entry.command.name
            yield ((name, "ok"), int(entry.done))
            yield ((name, "error"), int(entry.failed))


def _durations(state: NodeState) -> Iterator[Sample]:
    for entry in state.command_entries:
        if entry.done or entry.failed:
            yield ((entry.command.name,), entry.latency)


def _errors(state: NodeState) -> Iterator[Sample]:
    for code, count in state.errors.by_code.items():
        yield ((code,), int(count.value))


def _refusals(state: NodeState) -> Iterator[Sample]:
    for reason, code in REFUSALS.items():
        yield ((reason,), int(state.errors.by_code[code].value))


def _jobs(state: NodeState) -> Iterator[Sample]:
    lifecycle = state.lifecycle
    waiting = int(lifecycle.unplaced_jobs)
    delayed, queued, acked = int(lifecycle.queues.delayed_jobs), int(lifecycle.queued_jobs), int(lifecycle.acked_jobs)
    held = len(lifecycle.held.jobs)
    yield (("wait_repl",), waiting)
    yield (("delayed",), delayed)
    yield (("held",), held)
    yield (("active",), max(int(lifecycle.table.count) - waiting - delayed - queued - acked - held, 0))
    yield (("queued",), queued)
    yield (("acked",), acked)


METRICS: Final[tuple[NodeMetric, ...]] = (
    Metric(
        "disque_build_info",
        GAUGE,
        "Always 1. The labels are the version, the build (compiled or interpreted) and the version of Python.",
        _build,
        ("version", "build", "python"),
    ),
    gauge(
        "disque_start_time_seconds",
        "Start time of the node, as unix time.",
        lambda state: state.started_ms / 1000,
    ),
    gauge("disque_connected_clients", "Clients that are connected.", lambda state: len(state.sessions)),
    gauge(
        "disque_blocked_clients",
        "Clients that wait for a job (GETJOB) or for the copies of their job (ADDJOB).",
        lambda state: int(state.blocked_clients),
    ),
    gauge(
        "disque_loading",
        "1 while the node loads its append-only file.",
        lambda state: int(state.loading),
    ),
    Metric(
        "disque_commands_total",
        COUNTER,
        "Requests by command and result. A request that blocks counts when it begins to wait. Commands that were never "
        "called are missing.",
        _commands,
        ("command", "result"),
    ),
    Metric(
        "disque_command_duration_seconds",
        HISTOGRAM,
        "Processing time of requests, without the time that a client waits for a job or for copies.",
        _durations,
        ("command",),
    ),
    Metric(
        "disque_errors_total",
        COUNTER,
        "Error replies by their first word; `other` for those of DEBUG ERROR.",
        _errors,
        ("code",),
    ),
    Metric(
        "disque_requests_refused_total",
        COUNTER,
        "Requests that were refused because memory is used up (OOM), the disk fails (MISCONF), or the node is leaving "
        "or loading. They count as errors too.",
        _refusals,
        ("reason",),
    ),
    Metric(
        "disque_jobs",
        GAUGE,
        "Jobs of this node by state: waiting for copies, delayed, held until other jobs are done, active (delivered, "
        "or queued on another node), queued, or acknowledged and not collected yet. Each holder counts its own copy.",
        _jobs,
        ("state",),
    ),
    gauge(
        "disque_max_replicate",
        "Highest number of copies that any job of this node requests; at least 1.",
        lambda state: int(state.lifecycle.replication_counts.highest()),
    ),
    gauge(
        "disque_queues",
        "Queues of this node.",
        lambda state: len(state.lifecycle.queues),
    ),
    gauge(
        "disque_memory_used_bytes",
        "Memory in use as the node counts it, which `maxmemory` limits.",
        lambda state: int(state.lifecycle.memory.counted_bytes),
    ),
    gauge(
        "disque_memory_peak_bytes",
        "Highest value of `disque_memory_used_bytes` so far.",
        lambda state: int(state.lifecycle.memory.peak_bytes),
    ),
    gauge(
        "disque_memory_buffers_bytes",
        "Part of `disque_memory_used_bytes` that requests, replies and records in buffers take.",
        lambda state: int(state.lifecycle.memory.input_bytes + state.lifecycle.memory.buffer_bytes),
    ),
    gauge(
        "disque_memory_max_bytes",
        "`maxmemory`; 0 for no limit.",
        lambda state: int(state.lifecycle.memory.maximum_bytes),
    ),
    gauge(
        "disque_memory_resident_bytes",
        "Resident memory of the process.",
        lambda state: state.host.resident_bytes(),
    ),
    gauge(
        "disque_memory_limit_bytes",
        "Memory available to the process: the limit of its container, or the RAM of the machine.",
        lambda state: int(state.lifecycle.memory.system_bytes),
    ),
    gauge(
        "disque_memory_level",
        "Memory pressure: 0 none, 1 only other nodes store new jobs, 2 jobs are evicted, 3 commands that need more "
        "memory are refused.",
        lambda state: int(state.lifecycle.memory.level()),
    ),
    gauge(
        "disque_memory_resident_exceeded",
        "1 while resident memory exceeds its limit: the node acts as if memory were full, whatever its own count is.",
        lambda state: int(state.lifecycle.memory.resident_exceeded),
    ),
)
