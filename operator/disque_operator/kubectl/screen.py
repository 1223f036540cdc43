"""`kubectl disque status` on a terminal, drawn with `rich`: once, or redrawn in place."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NoReturn

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from disque_operator.apivalues import Json
from disque_operator.kubectl.api import UnreachableError, retrying
from disque_operator.kubectl.resource import (
    PHASE_STYLES,
    desired_replicas,
    drain_line,
    now_utc,
    status,
    tables,
)
from disqued.cli.views.terminal import rich_table

__all__ = ["redraw", "render", "rich_table", "show"]


def show(cluster: Json) -> None:
    """Print the status of a cluster."""
    console = Console()
    console.print(render(cluster, console.width))


def redraw(draw: Callable[[int], RenderableType], every_s: float) -> NoReturn:
    """Draw repeatedly until Ctrl-C; `draw` gets the terminal's width. The last drawing stays visible."""
    console = Console()
    with Live(console=console, auto_refresh=False) as live:
        while True:
            try:
                live.update(draw(console.width), refresh=True)
            except UnreachableError as error:
                live.update(Text(retrying(error), "bold red"), refresh=True)
            time.sleep(every_s)


def render(cluster: Json, width: int) -> RenderableType:
    """Render the status of a cluster: a headline, the conditions, the members and where clients outside reach them."""
    state = status(cluster)
    phase = state.get("phase", "Pending")
    title = Text.assemble(
        (cluster["metadata"]["name"], "bold"), "  ", (phase, PHASE_STYLES.get(phase, "cyan")), f"  {_facts(cluster)}"
    )
    parts: list[RenderableType] = [title]
    if message := state.get("message"):
        parts.append(Text(message))
    if draining := drain_line(cluster):
        parts.append(Text(draining, "yellow"))
    for columns, rows in tables(cluster, now_utc()):
        if rows:
            parts += [Text(), rich_table(columns, rows, width)]
    return Group(*parts)


def _facts(cluster: Json) -> str:
    """Return the namespace, size, version and number of jobs for the headline."""
    state = status(cluster)
    members = f"{state.get('readyReplicas') or 0}/{desired_replicas(cluster)} nodes ready"
    words = [f"namespace {cluster['metadata']['namespace']}", members]
    if version := state.get("version"):
        words.append(f"version {version}")
    if jobs := state.get("jobs"):
        words.append(f"{jobs.get('queued') or 0:,} jobs queued, {jobs.get('registered') or 0:,} job copies")
    return ", ".join(words)
