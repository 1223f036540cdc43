"""Rows as a table on a terminal, by `rich`, which sees to width, colours and NO_COLOR."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from disqued.cli.views.table import Column, Row


def print_table(columns: Sequence[Column[Row]], rows: Sequence[Row], empty: str) -> None:
    """Print the table, or the text when there are no rows."""
    Console().print(rich_table(columns, rows) if rows else empty)


def rich_table(columns: Sequence[Column[Row]], rows: Sequence[Row]) -> Table:
    """The columns that have a title; numbers stand on the right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    shown = [column for column in columns if column.title]
    for column in shown:
        numeric = any(isinstance(column.value(row), (int, float)) for row in rows)
        table.add_column(
            column.title,
            justify="right" if numeric else "left",
            no_wrap=not column.folds,
            overflow="fold" if column.folds else "ellipsis",
        )
    for row in rows:
        table.add_row(*(Text(column.text(row), column.style(row) if column.style else "") for column in shown))
    return table
