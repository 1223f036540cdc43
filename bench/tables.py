"""Tables of results, for a terminal and for the documentation, with marks for values that must reach a floor."""

from __future__ import annotations

from dataclasses import dataclass

from floors import Target


@dataclass(frozen=True, slots=True)
class Table:
    """A title, a head and rows of text."""

    title: str
    head: list[str]
    rows: list[list[str]]

    def as_text(self) -> str:
        """The table as aligned text."""
        widths = [max(len(row[column]) for row in [self.head, *self.rows]) for column in range(len(self.head))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in self._all()]
        return "\n".join([self.title, *(line.rstrip() for line in lines)])

    def as_markdown(self) -> str:
        """A Markdown table under a heading."""
        lines = ["| " + " | ".join(row) + " |" for row in self._all()]
        lines.insert(1, "|" + " --- |" * len(self.head))
        return "\n".join([f"### {self.title}", "", *lines])

    def _all(self) -> list[list[str]]:
        return [self.head, *self.rows]


def verdict(value: float, target: Target | None) -> str:
    """The mark of a value: whether it reaches its floor, and the floor."""
    if target is None:
        return ""
    mark = "ok" if target.met(value) else "MISSED"
    return f" {mark}, floor {target.floor:g}"


def number(value: float) -> str:
    """A value with its significant digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"  # three digits are what a measurement is worth
