"""Draws the samples of one event in characters, for LATENCY GRAPH.

Each sample is a column of four rows. The characters `_`, `o` and `#` divide a row into thirds, and `|` fills the rows
below. The lowest sample is at the bottom, the highest one reaches the top. Below each column is the age of the sample.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from disqued.core.telemetry.latency import LatencySeries

_ROWS: Final = 4
_COLUMNS: Final = 80
_LEVELS: Final = "_o#"
_FILL: Final = "|"
_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def draw(event: str, series: LatencySeries, now_s: int) -> str:
    """The whole graph: a head line, a rule, and as many bands of 80 columns as the samples fill."""
    values_ms = [spent_ms for _, spent_ms in series.samples]
    low_ms, high_ms = min(values_ms), max(values_ms)
    columns = [_column(value - low_ms, high_ms - low_ms) + " " for value in values_ms]
    columns = [column + _age(now_s - at_s) for column, (at_s, _) in zip(columns, series.samples, strict=True)]
    bands = [_band(columns[first : first + _COLUMNS]) for first in range(0, len(columns), _COLUMNS)]
    head = f"{event} - high {high_ms} ms, low {low_ms} ms (all time high {series.worst_ms} ms)\n"
    return head + "-" * _COLUMNS + "\n" + "\n".join(bands)


def _column(above_low: int, span: int) -> str:
    """The four characters of a sample from top to bottom."""
    levels = len(_LEVELS)
    top = min(above_low * levels * _ROWS // max(span, 1), levels * _ROWS - 1)
    return "".join(_cell(top - row * levels) for row in reversed(range(_ROWS)))


def _cell(level: int) -> str:
    """One character: the sample ends `level` thirds above this row's bottom."""
    if level < 0:
        return " "
    return _LEVELS[level] if level < len(_LEVELS) else _FILL


def _age(elapsed_s: int) -> str:
    """An age in its largest unit."""
    for seconds, unit in _UNITS:
        if elapsed_s >= seconds:
            return f"{elapsed_s // seconds}{unit}"
    return "0s"


def _band(columns: list[str]) -> str:
    """Join columns, which may differ in length, to lines."""
    return "".join("".join(row) + "\n" for row in zip_longest(*columns, fillvalue=" "))
