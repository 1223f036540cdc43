"""Draws the charts of the report as SVG: small, with text as text, and identical for the same numbers.

All distributions have the same form: a row for each queue, a column for each range, and in each cell the count, shaded
by its share of the row. This shows slow queues at a glance and keeps the numbers readable.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pipelines.aggregates import Distribution, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OUTCOMES: Final = (("waiting", "#2f6fb3"), ("finished", "#8fb996"), ("expired", "#d1603d"))
"""The outcomes of jobs with their colours, which also differ in lightness."""
_INK: Final = "#1f2933"
_FAINT: Final = "#7b8794"
_SHADES: Final = "Blues"
_STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none", "svg.hashsalt": "disque", "font.family": "sans-serif", "font.size": 10,
    "text.color": _INK, "axes.labelcolor": _INK, "xtick.color": _INK, "ytick.color": _INK, "text.parse_math": False,
}  # fmt: skip
_WIDTH_IN: Final = 10.0
_ROW_IN: Final = 0.34
_AROUND_IN: Final = 0.95
_LONGEST_NAME: Final = 30
_DARK: Final = 0.55
"""From this share of the row on, the number is white."""


def duration(seconds: float | None) -> str:
    """Format a duration: `0.2 s`, `45 s`, `10 min`, `3.5 h`, `2 d`."""
    if seconds is None:
        return "-"
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{_short(seconds / size)} {unit}"
    return f"{_short(seconds)} s" if seconds >= 0.1 or seconds == 0 else f"{_short(seconds * 1000)} ms"


def size(count: float | None) -> str:
    """Format a number of bytes: `999 B`, `1.5 kB`, `20 MB`."""
    if count is None:
        return "-"
    for unit, scale in (("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10)):
        if count >= scale:
            return f"{_short(count / scale)} {unit}"
    return f"{count:.0f} B"


def number(count: float) -> str:
    """Format a count: `950`, `12k`, `3.4M`."""
    for unit, scale in (("G", 1e9), ("M", 1e6), ("k", 1e4)):
        if count >= scale:
            return f"{_short(count / (1e3 if unit == 'k' else scale))}{unit}"
    return f"{count:.0f}"


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def name(queue: str) -> str:
    """Return the name of a queue, shortened if it is long."""
    return queue if len(queue) <= _LONGEST_NAME else queue[: _LONGEST_NAME - 1] + "…"


def ranges(edges: Sequence[float], shown: Callable[[float], str], *, whole: bool = False) -> list[str]:
    """Return the labels of the ranges between these edges; `whole` labels ranges of integers."""
    if whole:
        inner = [
            shown(low) if high - low == 1 else f"{shown(low)} to {shown(high - 1)}" for low, high in pairwise(edges)
        ]
        return ["0", *inner, f"{shown(edges[-1])}+"]
    return [f"< {shown(edges[0])}", *(f"≥ {shown(edge)}" for edge in edges)]


def outcome_chart(queues: Sequence[Row]) -> str:
    """Draw the outcomes of the jobs of each queue."""
    labels = [name(row["queue"]) for row in queues]
    figure, axes = _figure(len(labels))
    left = [0] * len(labels)
    for outcome, colour in OUTCOMES:
        counts = [row[outcome] for row in queues]
        axes.barh(range(len(labels)), counts, left=left, color=colour, label=outcome, height=0.7)
        left = [before + count for before, count in zip(left, counts, strict=True)]
    for place, total in enumerate(left):
        axes.text(total, place, f" {number(total)}", va="center", color=_FAINT)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_xlim(0, max([*left, 1]) * 1.12)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(lambda count, _: number(count))
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", frameon=False, ncols=len(OUTCOMES), bbox_to_anchor=(1.0, 1.0))
    return _svg(figure)


def distribution_chart(found: Distribution, columns: Sequence[str]) -> str:
    """Draw a distribution."""
    labels = [name(queue) for queue in found.counts]
    figure, axes = _figure(len(labels))
    shares = [[count / max(sum(counts), 1) for count in counts] for counts in found.counts.values()]
    axes.pcolormesh(shares, cmap=_SHADES, vmin=0, vmax=1, edgecolors="white", linewidth=2)
    for row, counts in enumerate(found.counts.values()):
        for column, count in enumerate(counts):
            if count:
                colour = "white" if shares[row][column] > _DARK else _INK
                axes.text(column + 0.5, row + 0.5, number(count), ha="center", va="center", color=colour)
    axes.set_xticks([place + 0.5 for place in range(len(columns))], columns)
    axes.set_yticks([place + 0.5 for place in range(len(labels))], labels)
    axes.tick_params(length=0)
    axes.xaxis.tick_top()
    axes.invert_yaxis()
    for spine in axes.spines.values():
        spine.set_visible(False)
    return _svg(figure)


def _figure(rows: int) -> tuple[Figure, Axes]:
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(_WIDTH_IN, _AROUND_IN + _ROW_IN * max(rows, 1)), layout="constrained")
        return figure, figure.add_subplot()


def _svg(figure: Figure) -> str:
    """Return the drawing as SVG to embed in a page."""
    out = io.StringIO()
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the browser draws the text, with its own fonts
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return text[text.index("<svg") :]
