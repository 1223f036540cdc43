"""Tables on a terminal, with `rich`, which handles width, colours and NO_COLOR."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from disqued.cli.views.columns import Column, Row

MAX_NAME_WIDTH = 40
"""Width of a job ID; longer names of queues are truncated."""
MIN_NAME_WIDTH = 6
ENDLESS = 10_000


def print_table(columns: Sequence[Column[Row]], rows: Sequence[Row], empty: str) -> None:
    """Print the table, or the text if there are no rows."""
    console = Console()
    console.print(rich_table(columns, rows, console.width) if rows else empty)


def rich_table(columns: Sequence[Column[Row]], rows: Sequence[Row], width: int) -> Table:
    """Return a table of the columns with a title, at most `width` characters wide; numbers are right-aligned."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, header_style="bold")
    shown = [column for column in columns if column.title and not (column.sparse and _is_empty(column, rows))]
    for column in shown:
        flexible = column.folds or column.yields
        table.add_column(
            column.title,
            justify="right" if any(isinstance(column.value(row), (int, float)) for row in rows) else "left",
            ratio=1 if flexible else None,
            min_width=MIN_NAME_WIDTH if flexible else None,
            max_width=None if flexible else MAX_NAME_WIDTH,
            no_wrap=not column.folds,
            overflow="fold" if column.folds else "ellipsis",
        )
    for row in rows:
        table.add_row(*(Text(column.text(row), column.style(row) if column.style else "") for column in shown))
    # `rich` gives the remaining width to the flexible columns only if the table expands.
    table.expand = _natural_width(table) > width
    return table


def _is_empty(column: Column[Row], rows: Sequence[Row]) -> bool:
    return bool(rows) and not any(column.text(row) for row in rows)


def _natural_width(table: Table) -> int:
    console = Console(width=ENDLESS)
    return console.measure(table).maximum
