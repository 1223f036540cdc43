"""What the node counts about clients, commands and memory, for Prometheus: figures of INFO that no other room has."""

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
"""Why requests are refused by a node that is not well, and the code of the error."""


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
    delayed, queued, acked = int(lifecycle.delayed_jobs), int(lifecycle.queued_jobs), int(lifecycle.acked_jobs)
    yield (("wait_repl",), waiting)
    yield (("delayed",), delayed)
    yield (("active",), int(lifecycle.table.count) - waiting - delayed - queued - acked)
    yield (("queued",), queued)
    yield (("acked",), acked)


METRICS: Final[tuple[NodeMetric, ...]] = (
    Metric(
        "disque_build_info",
        GAUGE,
        "Always 1; the labels say which version runs, compiled or interpreted, on which Python.",
        _build,
        ("version", "build", "python"),
    ),
    gauge(
        "disque_start_time_seconds",
        "When the node started, as unix time.",
        lambda state: state.started_ms / 1000,
    ),
    gauge("disque_connected_clients", "Clients that are connected.", lambda state: len(state.sessions)),
    gauge(
        "disque_blocked_clients",
        "Clients that wait for a job (GETJOB) or for the copies of theirs (ADDJOB).",
        lambda state: int(state.blocked_clients),
    ),
    gauge(
        "disque_loading",
        "1 while the node loads its append only file.",
        lambda state: int(state.loading),
    ),
    Metric(
        "disque_commands_total",
        COUNTER,
        "Requests by their command, and whether they were answered with an error. A client that has to wait is "
        "counted when it begins to. Commands that were never asked for are missing.",
        _commands,
        ("command", "result"),
    ),
    Metric(
        "disque_command_duration_seconds",
        HISTOGRAM,
        "How long the node worked on requests; the time a client waits for a job or for copies is not in it.",
        _durations,
        ("command",),
    ),
    Metric(
        "disque_errors_total",
        COUNTER,
        "Errors that clients were answered with, by their first word; `other` for those of DEBUG ERROR.",
        _errors,
        ("code",),
    ),
    Metric(
        "disque_requests_refused_total",
        COUNTER,
        "Requests that were refused because memory is used up (OOM), the disk fails (MISCONF), or the node is leaving "
        "or loading. They are among the errors.",
        _refusals,
        ("reason",),
    ),
    Metric(
        "disque_jobs",
        GAUGE,
        "Jobs this node knows: waiting for their copies, for the end of their delay, out of the queue (with a worker, "
        "or copies of jobs queued elsewhere), in a queue, or acknowledged and not forgotten yet. Each holder counts "
        "its own copy.",
        _jobs,
        ("state",),
    ),
    gauge(
        "disque_max_replicate",
        "The most copies that a job of this node asks for; 1 if none asks for more.",
        lambda state: int(state.lifecycle.replication_counts.highest()),
    ),
    gauge(
        "disque_queues",
        "Queues of this node.",
        lambda state: len(state.lifecycle.queues),
    ),
    gauge(
        "disque_memory_used_bytes",
        "Memory in use as the node counts it, which is held against `maxmemory`.",
        lambda state: int(state.lifecycle.memory.counted_bytes),
    ),
    gauge(
        "disque_memory_peak_bytes",
        "The most that was ever in use.",
        lambda state: int(state.lifecycle.memory.peak_bytes),
    ),
    gauge(
        "disque_memory_buffers_bytes",
        "The part of it that is requests, replies and records on their way.",
        lambda state: int(state.lifecycle.memory.input_bytes + state.lifecycle.memory.buffer_bytes),
    ),
    gauge(
        "disque_memory_max_bytes",
        "`maxmemory`; 0 for no limit.",
        lambda state: int(state.lifecycle.memory.maximum_bytes),
    ),
    gauge(
        "disque_memory_resident_bytes",
        "What the process takes of the machine's memory.",
        lambda state: state.host.resident_bytes(),
    ),
    gauge(
        "disque_memory_limit_bytes",
        "What there is for the process: the limit of its container, or the machine's RAM.",
        lambda state: int(state.lifecycle.memory.system_bytes),
    ),
    gauge(
        "disque_memory_level",
        "How short memory is: 0 not at all, 1 new jobs are kept by other nodes only, 2 what may be forgotten is, 3 "
        "commands that need more are refused.",
        lambda state: int(state.lifecycle.memory.level()),
    ),
    gauge(
        "disque_memory_squeezed",
        "1 while what is resident forbids more, whatever the count says.",
        lambda state: int(state.lifecycle.memory.squeezed),
    ),
)
