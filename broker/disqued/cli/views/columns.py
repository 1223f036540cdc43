"""The columns of tables, and rows as lines of text or as objects.

Names and order of columns are an interface: scripts rely on them.
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

    A terminal omits columns without `title`, and `sparse` columns that are empty in all rows. `shown` formats the value
    for a terminal; the default is the format of the pipe. `style` returns a style of `rich` for the cell. If the
    terminal is too narrow, a column that `yields` is truncated, and one that `folds` is wrapped.
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
        """Return the value as a terminal shows it."""
        return self.shown(row) if self.shown else plain(self.value(row))


def as_objects(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> list[dict[str, Value]]:
    """Return each row as an object with all columns."""
    return [{column.name: column.value(row) for column in columns} for row in rows]


def as_lines(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> str:
    """Return a line of names and one line per row, separated by tabs."""
    lines = ["\t".join(column.name for column in columns)]
    lines += ["\t".join(plain(column.value(row)) for column in columns) for row in rows]
    return "\n".join(lines) + "\n"


def plain(value: Value) -> str:
    """Format a value on one line: empty for None, lists with commas, control characters and invalid bytes escaped."""
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
    """Escape control characters and invalid bytes. A backslash is not escaped."""
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
    """Return the beginning of a job's body as text with escapes; an ellipsis marks a truncated body."""
    shown = [printable(character) for character in body[: characters * 4].decode("utf-8", "surrogateescape")]
    ends = list(accumulate(map(len, shown)))
    if len(body) <= characters * 4 and (not ends or ends[-1] <= characters):
        return "".join(shown)
    return "".join(shown[: bisect_right(ends, characters - 1)]) + "…"
