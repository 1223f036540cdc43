"""`disque queues [PATTERN]`: lists the queues of a node with their statistics."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from disqued.cli.arguments import Parser
from disqued.cli.endpoint import endpoint_options
from disqued.cli.exits import Exit
from disqued.cli.units import human_duration
from disqued.cli.views.client import client_for
from disqued.cli.views.columns import Column
from disqued.cli.views.table import print_rows, table_options
from disqued.client import Client, DisqueError, NoQuorum, QueueStats
from disqued.client.replies import queue_stats


def _by_priority(row: QueueStats) -> tuple[str, ...]:
    """The bands of priorities with their numbers of jobs; empty for a queue without priorities."""
    return tuple(f"{band}: {count}" for band, count in row.length_by_priority.items())


NAME: Column[QueueStats] = Column("queue", lambda row: row.name, "QUEUE", yields=True)
LENGTH: Column[QueueStats] = Column(
    "length", lambda row: row.length, "LENGTH", style=lambda row: "bold" if row.length else "dim"
)
BLOCKED: Column[QueueStats] = Column("blocked_clients", lambda row: row.blocked_clients, "BLOCKED")
PAUSE: Column[QueueStats] = Column(
    "pause", lambda row: row.pause, "PAUSE", style=lambda row: "dim" if row.pause == "none" else "yellow"
)
LIMITED: Column[QueueStats] = Column(
    "limited",
    lambda row: row.limited,
    "LIMITED",
    lambda row: "" if row.limited == "no" else row.limited,
    style=lambda _: "yellow",
    sparse=True,
)
COLUMNS: tuple[Column[QueueStats], ...] = (
    NAME,
    LENGTH,
    Column("jobs_in", lambda row: row.jobs_in, "IN"),
    Column("jobs_out", lambda row: row.jobs_out, "OUT"),
    BLOCKED,
    PAUSE,
    Column("age_s", lambda row: row.age_s, "AGE", lambda row: human_duration(row.age_s)),
    Column("idle_s", lambda row: row.idle_s, "IDLE", lambda row: human_duration(row.idle_s)),
    Column("import_rate", lambda row: row.import_rate),
    Column("import_from", lambda row: row.import_from),
    Column("length_by_priority", _by_priority),
    Column("leased", lambda row: row.leased, "LEASED", style=lambda row: "" if row.leased else "dim"),
    Column("delayed", lambda row: row.delayed, "DELAYED", style=lambda row: "" if row.delayed else "dim"),
    Column("held", lambda row: row.held),
    Column("dead", lambda row: row.dead, "DEAD", style=lambda row: "red" if row.dead else "dim"),
    Column("oldest_ms", lambda row: row.oldest_ms),
    Column("settings", lambda row: row.settings),
    LIMITED,
)

SORTS: dict[str, Callable[[QueueStats], tuple[int, str]]] = {
    "name": lambda row: (0, row.name),
    "length": lambda row: (-row.length, row.name),
    "leased": lambda row: (-row.leased, row.name),
    "delayed": lambda row: (-row.delayed, row.name),
    "held": lambda row: (-row.held, row.name),
    "dead": lambda row: (-row.dead, row.name),
    "in": lambda row: (-row.jobs_in, row.name),
    "out": lambda row: (-row.jobs_out, row.name),
    "blocked": lambda row: (-row.blocked_clients, row.name),
    "age": lambda row: (-row.age_s, row.name),
    "idle": lambda row: (-row.idle_s, row.name),
}
"""Numbers sort in descending order, equal ones by name."""


def run(options: argparse.Namespace) -> Exit:
    """Print the queues whose names match the pattern."""
    parser = Parser("disque queues", None, "List the queues of a node.", [endpoint_options()])
    parser.add_argument("pattern", nargs="?", default="*", help="glob pattern of the names, for example 'mail-*'")
    parser.add_argument("--sort", choices=SORTS, default="length", help="sort by this column (default: length)")
    table_options(parser)
    options = parser.parse(options.command[1:], options)
    with client_for(options) as client:
        rows = sorted(matching(client, options.pattern), key=SORTS[options.sort])
    print_rows(
        COLUMNS, rows, options.form, "No queues found." if options.pattern == "*" else "No queue matches the pattern."
    )
    return Exit.OK


def matching(client: Client, pattern: str) -> list[QueueStats]:
    """Return the statistics of a node's queues whose names match a glob pattern."""
    return stats_of(client, [name for name in sorted(set(client.qscan())) if fnmatchcase(name, pattern)])


def stats_of(client: Client, names: Sequence[str]) -> list[QueueStats]:
    """Return the statistics of these queues, without queues that no longer exist, and ordered ones without a leader."""
    found: list[QueueStats] = []
    for answer in client.execute_many([("QSTAT", name) for name in names]):
        if isinstance(answer, DisqueError) and not isinstance(answer, NoQuorum):
            raise answer
        if answer is not None and not isinstance(answer, DisqueError):
            found.append(queue_stats(answer))
    return found
