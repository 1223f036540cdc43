"""`disque schedules [PATTERN]`: lists schedules with their last and next runs."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from disqued.cli.arguments import Parser
from disqued.cli.endpoint import endpoint_options
from disqued.cli.exits import Exit
from disqued.cli.views.client import client_for
from disqued.cli.views.columns import Column, printable
from disqued.cli.views.table import print_rows, table_options
from disqued.client import Schedule

_MOST_MS = 250_000_000_000_000
_STYLES = {"active": "", "paused": "yellow", "done": "dim", "no-majority": "red", "invalid": "red"}


def _when(unix_ms: int) -> str:
    """A time in UTC, to the second; a dash for none."""
    return f"{datetime.fromtimestamp(min(unix_ms, _MOST_MS) // 1000, UTC):%Y-%m-%d %H:%M:%SZ}" if unix_ms else "-"


def _timing(row: Schedule) -> str:
    """When it is due, with its time zone."""
    return f"{row.when} {row.zone}".rstrip()


COLUMNS: tuple[Column[Schedule], ...] = (
    Column("name", lambda row: row.name, "NAME", yields=True),
    Column("when", lambda row: row.when, "WHEN", _timing, folds=True),
    Column("zone", lambda row: row.zone),
    Column("queue", lambda row: row.queue, "QUEUE", yields=True),
    Column("state", lambda row: row.state, "STATE", style=lambda row: _STYLES.get(row.state, "")),
    Column("next_ms", lambda row: row.next_ms, "NEXT", lambda row: _when(row.next_ms)),
    Column("last_ms", lambda row: row.last_ms, "LAST", lambda row: _when(row.last_ms)),
    Column("runs", lambda row: row.runs, "RUNS"),
    Column("runs_missed", lambda row: row.runs_missed, "MISSED"),
    Column("problem", lambda row: row.problem, "PROBLEM", folds=True, style=lambda _: "red"),
    Column("last_job", lambda row: row.last_job),
    Column("options", lambda row: row.options),
    Column("missed", lambda row: row.missed),
    Column("strict", lambda row: "yes" if row.strict else "no"),
    Column("node", lambda row: row.node),
    Column("changed_ms", lambda row: row.changed_ms),
)


def run(options: argparse.Namespace) -> Exit:
    """Print the schedules."""
    parser = Parser(
        "disque schedules",
        None,
        "List schedules. Set them with 'disque schedule NAME set WHEN QUEUE BODY', and change them with "
        "'disque schedule NAME pause|resume|run|del'.",
        [endpoint_options()],
    )
    parser.add_argument("pattern", nargs="?", default="*", help="glob pattern of names")
    table_options(parser)
    options = parser.parse(options.command[1:], options)
    with client_for(options) as client:
        rows = client.schedules(options.pattern)
    print_rows(COLUMNS, rows, options.form, f"No schedule matches '{printable(options.pattern)}'.")
    return Exit.OK
