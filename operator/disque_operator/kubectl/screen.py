"""`kubectl disque status` on a terminal, by `rich`: once, or redrawn in place."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NoReturn

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from disque_operator.apivalues import Json
from disque_operator.kubectl.api import UnreachableError
from disque_operator.kubectl.resource import (
    MEMBERS,
    PHASE_STYLES,
    conditions,
    drain_line,
    now_utc,
    status,
    wanted_replicas,
)
from disqued.cli.views.terminal import rich_table

__all__ = ["picture", "redraw", "rich_table", "show"]


def show(cluster: Json) -> None:
    """Print it."""
    console = Console()
    console.print(picture(cluster, console.width))


def redraw(look: Callable[[int], RenderableType], every_s: float) -> NoReturn:
    """Show what `look` makes for that width until Ctrl-C; what it showed last stays on the screen."""
    console = Console()
    with Live(console=console, auto_refresh=False) as live:
        while True:
            try:
                live.update(look(console.width), refresh=True)
            except UnreachableError as error:
                live.update(Text(f"No answer from Kubernetes, trying again: {error}", "bold red"), refresh=True)
            time.sleep(every_s)


def picture(cluster: Json, width: int) -> RenderableType:
    """The whole of it."""
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
    for columns, rows in ((conditions(now_utc()), state.get("conditions")), (MEMBERS, state.get("members"))):
        if rows:
            parts += [Text(), rich_table(columns, rows, width)]
    return Group(*parts)


def _facts(cluster: Json) -> str:
    """Figures that say what cluster this is."""
    state = status(cluster)
    members = f"{state.get('readyReplicas') or 0} ready, {wanted_replicas(cluster)} wanted"
    words = [f"namespace {cluster['metadata']['namespace']}", members]
    if version := state.get("version"):
        words.append(f"version {version}")
    if jobs := state.get("jobs"):
        words.append(f"{jobs.get('queued') or 0:,} jobs queued, {jobs.get('registered') or 0:,} copies of jobs")
    return ", ".join(words)
