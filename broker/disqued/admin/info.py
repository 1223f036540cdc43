"""INFO: statistics of the server, as lines `name:value` in sections.

Names and order are those of Disque 1.0-rc1, so that tools that read them continue to work; additional fields are at the
end of their section. The cost does not depend on the number of jobs and queues.
"""

from __future__ import annotations

import platform
import re
import sys
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from disqued import SPOKEN_VERSION, __version__
from disqued.build import FLAVOUR
from disqued.core.commands.command import Command
from disqued.core.runtime.counters import (
    CLOSED_FOR_MEMORY,
    COMMANDS,
    CONNECTIONS,
    INPUT_BYTES,
    JOBS_EVICTED,
    LINKS_OVERFLOWED,
    LOST_BYTES,
    OUTPUT_BYTES,
    RECORDS_EXPIRED,
    REJECTED_CONNECTIONS,
    REQUESTS_REFUSED_UNREAD,
)
from disqued.errors import CommandSyntaxError

if TYPE_CHECKING:
    from collections.abc import Callable

    from disqued.core.clients.session import Session
    from disqued.core.host.host import ProcessFacts
    from disqued.core.runtime.state import NodeState
    from disqued.core.telemetry.fields import Fields

_NO_COMMIT: Final = "00000000"
_EXTENSIONS: Final = (
    "ackjob-claim",
    "ackjob-seq",
    "addjob-after",
    "addjob-key",
    "addjob-meta",
    "addjob-priority",
    "addjob-sync",
    "addjob-until",
    "addjob-withcopies",
    "getjob-frompattern",
    "getjob-withclaim",
    "getjob-withmeta",
    "getjob-withrequeue",
    "nack-claim",
    "nack-dead",
    "nack-delay",
    "nack-reason",
    "nack-uncounted",
    "working-claim",
    "working-for",
    "working-note",
)
"""What clients can use beyond the original: commands with their options."""
_BYTE_UNITS: Final = "BKMGTP"


def info(state: NodeState, session: Session, args: list[bytes]) -> None:
    """Reply with one section or several; nothing for a section that does not exist."""
    if len(args) > 2:
        raise CommandSyntaxError
    asked = args[1].decode("utf-8", "surrogateescape").lower() if len(args) == 2 else "default"
    sections = _SECTIONS | dict(state.info_sections)
    shown = [
        (title, fields(state))
        for title, fields in sections.items()
        if asked in {title.lower(), "all"} or (asked == "default" and title not in _ON_REQUEST)
    ]
    text = "\r\n".join([_section(title, fields) for title, fields in shown if fields or title in _SECTIONS])
    session.reply_bulk(text.encode("utf-8", "surrogateescape"))


def _section(title: str, fields: Fields) -> str:
    return f"# {title}\r\n" + "".join([f"{name}:{value}\r\n" for name, value in fields])


def _server(state: NodeState) -> Fields:
    config = state.config
    facts = state.host.facts()
    uptime_s = (state.now_ms - state.started_ms) // 1000
    return [
        ("disque_version", SPOKEN_VERSION),
        ("disque_git_sha1", _NO_COMMIT),
        ("disque_git_dirty", 0),
        ("disque_build_id", blake2b(f"{__version__} {FLAVOUR} {sys.version}".encode(), digest_size=8).hexdigest()),
        ("os", facts.operating_system),
        ("arch_bits", 64 if sys.maxsize > 1 << 32 else 32),
        ("multiplexing_api", facts.multiplexing_api),
        ("gcc_version", _compiler_version()),
        ("process_id", facts.process_id),
        ("run_id", state.run_id.decode()),
        ("tcp_port", config.port),
        ("uptime_in_seconds", uptime_s),
        ("uptime_in_days", uptime_s // 86400),
        ("hz", config.hz),
        ("executable", facts.executable),
        ("config_file", facts.config_file),
        ("disqued_version", __version__),
        ("python_version", platform.python_version()),
        ("build", FLAVOUR),
        ("disqued_extensions", ",".join(_EXTENSIONS)),
        *_tls(state, facts),
    ]


def _tls(state: NodeState, facts: ProcessFacts) -> Fields:
    """The fields of a node that uses TLS."""
    if not facts.certificate_expires_s:
        return []
    left_s = facts.certificate_expires_s - state.host.wall_us() // 1_000_000
    return [("tls_port", state.config.tls_port), ("tls_certificate_expires_in_seconds", left_s)]


def _compiler_version() -> str:
    """The version of the compiler that built Python."""
    found = re.search(r"\d+\.\d+\.\d+", platform.python_compiler())
    return found[0] if found is not None else "0.0.0"


def _clients(state: NodeState) -> Fields:
    sessions = state.sessions.values()
    return [
        ("connected_clients", len(sessions)),
        ("client_longest_output_list", max((len(session.out) for session in sessions), default=0)),
        ("client_biggest_input_buf", max((session.parser.buffered_bytes for session in sessions), default=0)),
        ("blocked_clients", state.blocked_clients),
    ]


def _memory(state: NodeState) -> Fields:
    memory = state.lifecycle.memory
    memory.look()
    used_bytes = int(memory.counted_bytes)
    peak_bytes = int(memory.peak_bytes)
    resident_bytes = state.host.resident_bytes()
    maximum_bytes = int(memory.maximum_bytes)
    limit = state.host.memory_limit()
    return [
        ("used_memory", used_bytes),
        ("used_memory_human", human_size(used_bytes)),
        ("used_memory_rss", resident_bytes),
        ("used_memory_peak", peak_bytes),
        ("used_memory_peak_human", human_size(peak_bytes)),
        ("mem_fragmentation_ratio", f"{resident_bytes / used_bytes:.2f}"),
        ("mem_allocator", "pymalloc"),
        ("used_memory_startup", int(memory.startup_bytes)),
        ("used_memory_buffers", int(memory.input_bytes + memory.buffer_bytes)),
        ("maxmemory", maximum_bytes),
        ("maxmemory_human", human_size(maximum_bytes)),
        ("maxmemory_policy", state.config.maxmemory_policy),
        ("maxmemory_resident", int(memory.most_resident_bytes + memory.startup_bytes) if maximum_bytes else 0),
        ("memory_limit", limit.size_bytes),
        ("memory_limit_source", limit.source),
        ("memory_level", int(memory.level())),
        ("memory_resident_exceeded", int(memory.resident_exceeded)),
        ("requests_refused_unread", state.counters.value(REQUESTS_REFUSED_UNREAD)),
        ("clients_closed_for_memory", state.counters.value(CLOSED_FOR_MEMORY)),
    ]


def human_size(size_bytes: int) -> str:
    """Format bytes in the largest unit in which they are at least 1, with two decimals from kilobytes on."""
    if size_bytes < 1024:
        return f"{size_bytes}B"
    power = min((size_bytes.bit_length() - 1) // 10, len(_BYTE_UNITS) - 1)
    return f"{size_bytes / 1024**power:.2f}{_BYTE_UNITS[power]}"


def _jobs(state: NodeState) -> Fields:
    lifecycle = state.lifecycle
    return [
        ("registered_jobs", lifecycle.table.count),
        ("queued_jobs", int(lifecycle.queued_jobs)),
        ("jobs_waiting_for_copies", int(state.lifecycle.unplaced_jobs)),
        ("max_replicate", lifecycle.replication_counts.highest()),
    ]


def _queues(state: NodeState) -> Fields:
    return [("registered_queues", len(state.lifecycle.queues))]


def _persistence(state: NodeState) -> Fields:
    return state.events.persistence_status()


def _stats(state: NodeState) -> Fields:
    count = state.counters.value
    return [
        ("total_connections_received", count(CONNECTIONS)),
        ("total_commands_processed", count(COMMANDS)),
        ("instantaneous_ops_per_sec", int(state.throughput.command_rate.per_second())),
        ("total_net_input_bytes", count(INPUT_BYTES)),
        ("total_net_output_bytes", count(OUTPUT_BYTES)),
        ("instantaneous_input_kbps", f"{state.throughput.input_rate.per_second() / 1024:.2f}"),
        ("instantaneous_output_kbps", f"{state.throughput.output_rate.per_second() / 1024:.2f}"),
        ("rejected_connections", count(REJECTED_CONNECTIONS)),
        ("latest_fork_usec", 0),
        ("expired_jobs", count(RECORDS_EXPIRED)),
        ("evicted_jobs", count(JOBS_EVICTED)),
    ]


def _cpu(state: NodeState) -> Fields:
    facts = state.host.facts()
    return [
        ("used_cpu_sys", f"{facts.system_s:.2f}"),
        ("used_cpu_user", f"{facts.user_s:.2f}"),
        ("used_cpu_sys_children", f"{facts.children_system_s:.2f}"),
        ("used_cpu_user_children", f"{facts.children_user_s:.2f}"),
    ]


def _commandstats(state: NodeState) -> Fields:
    """One line for each command that was called."""
    fields: Fields = []
    for entry in state.command_entries:
        if entry.calls > 0:
            calls, spent_us = int(entry.calls), int(entry.latency.sum) // 1000
            value = f"calls={calls},usec={spent_us},usec_per_call={spent_us / calls:.2f}"
            fields.append((f"cmdstat_{entry.command.name}", value))
    return fields


def _busstats(state: NodeState) -> Fields:
    """A line for each type of message that was sent or received, and what was lost."""
    fields: Fields = []
    for kind, name in state.message_table.names.items():
        traffic = state.traffic[kind]
        if traffic.sent.value or traffic.received.value:
            value = f"sent={traffic.sent.value},sent_bytes={traffic.sent_bytes.value},received={traffic.received.value}"
            fields.append((f"busstat_{name.lower()}", value))
    if fields:
        fields.append(("bus_links_overflowed", state.counters.value(LINKS_OVERFLOWED)))
        fields.append(("bus_lost_bytes", state.counters.value(LOST_BYTES)))
    return fields


_SECTIONS: Final[dict[str, Callable[[NodeState], Fields]]] = {
    "Server": _server,
    "Clients": _clients,
    "Memory": _memory,
    "Jobs": _jobs,
    "Queues": _queues,
    "Persistence": _persistence,
    "Stats": _stats,
    "CPU": _cpu,
    "Commandstats": _commandstats,
    "Busstats": _busstats,
}

_ON_REQUEST: Final = {"Commandstats", "Busstats"}
"""Sections that `INFO` alone does not show."""

COMMAND: Final[Command] = Command(
    "info",
    -1,
    ("readonly", "loading"),
    info,
    "server",
    "Shows figures about the server.",
    "[section | default | all]",
    "O(clients)",
    categories=("inspect",),
)
