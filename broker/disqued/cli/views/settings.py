"""`disque settings [PATTERN]`: lists what is set for queues, or with `--queue` the settings that hold for one queue."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from disqued.cli.arguments import Parser
from disqued.cli.endpoint import endpoint_options
from disqued.cli.exits import Exit
from disqued.cli.views.client import client_for
from disqued.cli.views.columns import Column, printable
from disqued.cli.views.table import print_rows, table_options
from disqued.client import QueueSetting, StoredSetting

_MOST_MS = 4_000_000_000_000

COLUMNS: tuple[Column[StoredSetting], ...] = (
    Column("name", lambda row: row.name, "NAME", yields=True),
    Column("setting", lambda row: row.setting, "SETTING"),
    Column("value", lambda row: row.value, "VALUE", folds=True),
    Column("changed_ms", lambda row: row.changed_ms, "CHANGED", lambda row: _when(row.changed_ms)),
    Column("node", lambda row: row.node_id, "NODE", lambda row: row.node_id[:8]),
)
OF_QUEUE: tuple[Column[tuple[str, QueueSetting]], ...] = (
    Column("setting", lambda row: row[0], "SETTING"),
    Column("value", lambda row: row[1].value, "VALUE", folds=True, style=lambda row: "" if row[1].source else "dim"),
    Column("from", lambda row: row[1].source, "FROM", yields=True),
)
"""A default comes from no name."""


def _when(unix_ms: int) -> str:
    """A time in UTC, to the second."""
    return f"{datetime.fromtimestamp(min(unix_ms, _MOST_MS) // 1000, UTC):%Y-%m-%d %H:%M:%SZ}"


def run(options: argparse.Namespace) -> Exit:
    """Print the settings."""
    parser = Parser(
        "disque settings",
        None,
        "List the settings of queues. Change them with 'disque qconf NAME SET SETTING VALUE'.",
        [endpoint_options()],
    )
    parser.add_argument("pattern", nargs="?", default="*", help="glob pattern of the names for which something is set")
    parser.add_argument("--queue", help="show the settings that hold for this queue, and where they come from")
    table_options(parser)
    options = parser.parse(options.command[1:], options)
    with client_for(options) as client:
        if options.queue is not None:
            found = client.qconf_get(options.queue)
            print_rows(OF_QUEUE, found.items(), options.form, "No settings.")
            return Exit.OK
        rows = client.qconf_show(options.pattern)
    print_rows(COLUMNS, rows, options.form, f"Nothing is set for '{printable(options.pattern)}'.")
    return Exit.OK
