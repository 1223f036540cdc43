"""Columns of rows, and the forms of rows and values for programs: lines of text and objects.

Names and order of the columns are an interface: scripts rely on them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Generic, TypeAlias, TypeVar

Row = TypeVar("Row")
Value: TypeAlias = "str | int | float | tuple[str, ...] | None"

_ESCAPES = {code: f"\\x{code:02x}" for code in (*range(32), 127)} | {9: "\\t", 10: "\\n", 13: "\\r"}
_BACKSLASH = {92: "\\\\"}


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column: its name for programs, its value, and how a terminal shows it.

    Without `title` a terminal leaves the column out; `shown` makes the text, by default that of the pipe. `style` is a
    style of `rich` for a row's cell. Where the terminal is too narrow, a column that `yields` is cut and one
    that `folds` goes over several lines. One that is `sparse` is left out there while no row has anything in it.
    """

    name: str
    value: Callable[[Row], Value]
    title: str = ""
    shown: Callable[[Row], str] | None = None
    style: Callable[[Row], str] | None = None
    yields: bool = False
    folds: bool = False
    sparse: bool = False

    def text(self, row: Row) -> str:
        """The value as a terminal shows it."""
        return self.shown(row) if self.shown else plain(self.value(row))


def as_objects(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> list[dict[str, Value]]:
    """Each row as an object with all columns."""
    return [{column.name: column.value(row) for column in columns} for row in rows]


def as_lines(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> str:
    """A line of names, then one line for each row, separated by tabs."""
    lines = ["\t".join(column.name for column in columns)]
    lines += ["\t".join(plain(column.value(row)) for column in columns) for row in rows]
    return "\n".join(lines) + "\n"


def plain(value: Value) -> str:
    """A value on one line: nothing for None, commas in a list, escapes for control characters and bytes."""
    match value:
        case None:
            return ""
        case str():
            return printable(value.translate(_BACKSLASH))
        case tuple():
            return ",".join(map(plain, value))
        case float():
            return f"{value:.3f}"
        case _:
            return str(value)


def printable(text: str) -> str:
    """The text with escapes for what would move the cursor or is no text. A backslash stays as it is."""
    escaped = text.translate(_ESCAPES)
    if escaped.isprintable():
        return escaped
    return "".join(
        character if character.isprintable()
        else f"\\x{ord(character) - 0xDC00:02x}" if 0xDC80 <= ord(character) <= 0xDCFF
        else f"\\u{ord(character):04x}"
        for character in escaped
    )  # fmt: skip


def body_text(body: bytes, characters: int) -> str:
    """The beginning of a job's body for a person: text with escapes, and how much is left out."""
    shown = [printable(character) for character in body[: characters * 4].decode("utf-8", "surrogateescape")]
    ends = list(accumulate(map(len, shown)))
    if len(body) <= characters * 4 and (not ends or ends[-1] <= characters):
        return "".join(shown)
    return "".join(shown[: bisect_right(ends, characters - 1)]) + "…"
