"""Prints rows on a terminal, in a pipe or as JSON, from one list of columns.

A terminal gets a table (`disqued.cli.views.terminal`) that may omit columns and shorten numbers. A pipe gets all
columns and plain numbers, separated by tabs, after a line of names. `--json` prints an array of objects with the same
names.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence

from disqued.cli.render import Form
from disqued.cli.views.columns import Column, Row, as_lines, as_objects


def table_options(parser: argparse.ArgumentParser) -> None:
    """Add the option `--json`."""
    parser.add_argument(
        "--json",
        dest="form",
        action="store_const",
        const=Form.JSON,
        default=argparse.SUPPRESS,
        help="print an array of JSON objects",
    )


def print_rows(columns: Sequence[Column[Row]], rows: Iterable[Row], form: Form | None, empty: str) -> None:
    """Print the rows in the requested format; `empty` is the text on a terminal if there are none."""
    rows = list(rows)
    if form is Form.JSON:
        sys.stdout.write(json.dumps(as_objects(columns, rows)) + "\n")
    elif form is None and sys.stdout.isatty():
        from disqued.cli.views.terminal import print_table  # noqa: PLC0415  slow to import, and not needed in a pipe

        print_table(columns, rows, empty)
    else:
        sys.stdout.write(as_lines(columns, rows))
