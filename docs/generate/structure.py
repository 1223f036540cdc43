"""The pictures of the structure of the core, docs/images/core-*.svg: modules, imports and circles.

    python -m docs.generate.structure                      draw the core as it is
    python -m docs.generate.structure TREE NAME            draw the core of another checkout as docs/images/NAME.svg

Imports are read from the source, those for types included. Boxes stand above what they import. Modules that import
each other in a circle share one red box.
"""
# ruff: noqa: T201  (a script that prints what it drew)

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

import networkx as nx

DOCS: Final = Path(__file__).parents[1]
PACKAGE: Final = "disqued.core"
_ROW_HEIGHT: Final = 15
_GAP_X: Final = 60
_GAP_Y: Final = 46
_CHARACTER: Final = 6.7
_WIDEST: Final = 1180


def imports(root: Path, package: str) -> nx.DiGraph:
    """The modules of a package below `root` and which of them each one imports."""
    names = {}
    for path in sorted((root / package.replace(".", "/")).rglob("*.py")):
        name = ".".join(path.with_suffix("").relative_to(root).parts).removesuffix(".__init__")
        names[name] = path
    graph = nx.DiGraph()
    for name, path in names.items():
        if path.name != "__init__.py":
            graph.add_node(name)
            graph.add_edges_from((name, other) for other in _imported(path, names) if other != name)
    return graph.subgraph([name for name in graph if names[name].name != "__init__.py"]).copy()


def _imported(path: Path, names: Mapping[str, Path]) -> Iterable[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield from (name for name in (inner, node.module) if name in names)


def circles(graph: nx.DiGraph) -> list[set[str]]:
    """The sets of modules that import each other, the largest first."""
    found = (set(group) for group in nx.strongly_connected_components(graph) if len(group) > 1)
    return sorted(found, key=len, reverse=True)


@dataclass
class Box:
    """A package, a module or a circle in the picture."""

    title: str
    lines: list[str]
    circle: bool = False
    x: float = 0
    y: float = 0

    @property
    def width(self) -> float:
        """Width in pixels."""
        return max(map(len, [self.title, *self.lines])) * _CHARACTER + 18

    @property
    def height(self) -> float:
        """Height in pixels."""
        return (len(self.lines) + 1) * _ROW_HEIGHT + 12


def boxes_of(graph: nx.DiGraph, package: str = PACKAGE) -> tuple[dict[str, Box], nx.DiGraph]:
    """A box for each package, for each module that is in none, and for each circle; and the arrows between them."""
    box_of: dict[str, str] = {}
    boxes: dict[str, Box] = {}
    for group in circles(graph):
        title = f"circle of {len(group)} modules"
        key = "|".join(sorted(group))
        boxes[key] = Box(title, sorted(name.removeprefix(f"{package}.") for name in group), circle=True)
        box_of |= dict.fromkeys(group, key)
    for name in sorted(graph):
        if name in box_of:
            continue
        head, _, rest = name.removeprefix(f"{package}.").partition(".")
        box = boxes.setdefault(head, Box(head, []))
        if rest:
            box.lines.append(rest)
        box_of[name] = head
    for box in boxes.values():
        box.lines = _columns(box.lines)
    arrows = nx.DiGraph()
    arrows.add_nodes_from(boxes)
    arrows.add_edges_from((box_of[one], box_of[other]) for one, other in graph.edges if box_of[one] != box_of[other])
    return boxes, arrows


def _columns(names: list[str]) -> list[str]:
    """Names side by side, up to three in a line."""
    width = 1 if len(names) < 4 else 2 if len(names) < 10 else 3
    return [" · ".join(names[at : at + width]) for at in range(0, len(names), width)]


def _place(boxes: dict[str, Box], arrows: nx.DiGraph) -> tuple[float, float]:
    """Put each box above what it imports; returns the size of the picture."""
    tree = nx.transitive_reduction(nx.condensation(arrows))
    members = nx.condensation(arrows).nodes(data="members")
    level = dict.fromkeys(tree, 0)
    for node in reversed(list(nx.topological_sort(tree))):
        level[node] = max((level[below] + 1 for below in tree.successors(node)), default=0)
    rows: dict[int, list[Box]] = {}
    for node, names in members:
        rows.setdefault(level[node], []).extend(boxes[name] for name in sorted(names))
    y = 10.0
    for at in sorted(rows, reverse=True):
        for line in _lines_of(sorted(rows[at], key=lambda box: box.title)):
            width = sum(box.width for box in line) + _GAP_X * (len(line) - 1)
            x = (_WIDEST - width) / 2
            for box in line:
                box.x, box.y = x, y
                x += box.width + _GAP_X
            y += max(box.height for box in line) + _GAP_Y
    return _WIDEST, y - _GAP_Y + 10


def _lines_of(row: list[Box]) -> list[list[Box]]:
    """A row that is too wide in several lines."""
    lines: list[list[Box]] = [[]]
    for box in row:
        if sum(other.width + _GAP_X for other in lines[-1]) + box.width > _WIDEST:
            lines.append([])
        lines[-1].append(box)
    return lines


def picture(graph: nx.DiGraph, package: str = PACKAGE) -> str:
    """The structure as SVG."""
    boxes, arrows = boxes_of(graph, package)
    width, height = _place(boxes, arrows)
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'font-family="monospace" font-size="11">'
        ),
        (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0 0 8 4 0 8z" fill="#5b6b7b"/></marker></defs>'
        ),
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
    ]
    for one, other in sorted(arrows.edges):
        parts.append(_arrow(boxes[one], boxes[other]))
    parts += [_drawn(box) for _, box in sorted(boxes.items())]
    return "\n".join([*parts, "</svg>\n"])


def _arrow(one: Box, other: Box) -> str:
    x1, x2 = one.x + one.width / 2, other.x + other.width / 2
    down = other.y > one.y
    y1, y2 = (one.y + one.height, other.y) if down else (one.y, other.y + other.height)
    middle = (y1 + y2) / 2
    return (
        f'<path d="M{x1:.0f} {y1:.0f} C{x1:.0f} {middle:.0f} {x2:.0f} {middle:.0f} {x2:.0f} {y2:.0f}" fill="none" '
        f'stroke="#5b6b7b" stroke-opacity="0.45" marker-end="url(#tip)"/>'
    )


def _drawn(box: Box) -> str:
    fill, edge = ("#fdeaea", "#c62828") if box.circle else ("#f3f6fa", "#8fa3b8")
    lines = [
        (
            f'<rect x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" rx="5" '
            f'fill="{fill}" stroke="{edge}"/>'
        ),
        f'<text x="{box.x + 9:.0f}" y="{box.y + 16:.0f}" font-weight="bold" fill="#1c2733">{escape(box.title)}</text>',
    ]
    for at, line in enumerate(box.lines, 1):
        y = box.y + 16 + at * _ROW_HEIGHT
        lines.append(f'<text x="{box.x + 9:.0f}" y="{y:.0f}" fill="#3c4a58">{escape(line)}</text>')
    return "\n".join(lines)


def summary(root: Path, package: str) -> str:
    """Modules, imports and circles of a package in one line."""
    graph = imports(root, package)
    sizes = ", ".join(str(len(group)) for group in circles(graph)) or "none"
    return f"{package}: {len(graph)} modules, {graph.number_of_edges()} imports; circles of modules: {sizes}"


def main(tree: str = str(DOCS.parent), name: str = "core-structure") -> None:
    """Draw the core of a checkout."""
    root = Path(tree) / "broker"
    path = DOCS / "images" / f"{name}.svg"
    path.write_text(picture(imports(root, PACKAGE)), encoding="utf-8")
    print(f"written: docs/images/{path.name}")
    print(summary(root, PACKAGE), summary(root, "disqued"), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
