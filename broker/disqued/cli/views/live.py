"""The live picture of `disque top`: redrawn in place, with keys."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import termios
import tty
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from disqued.cli.views.load import MAX_QUEUES, Load, Sample, take_sample, with_oldest
from disqued.cli.views.terminal import rich_table
from disqued.cli.views.top import COLUMNS, FIGURES, ORDERS, ordered
from disqued.client import Client

HISTORY = 60
"""Samples of the total rates that the sparklines show."""
SPARKS = "▁▂▃▄▅▆▇█"
LINES_AROUND = 9
"""Lines of the screen that are not rows of the table."""


def watch(client: Client, sample: Sample, interval_s: float, key: str) -> None:
    """Redraw until `q` or Ctrl-C is pressed. A key of `ORDERS` changes the order at once."""
    console = Console()
    history: deque[tuple[float, float]] = deque(maxlen=HISTORY)
    with _keys() as next_key, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            loads = ordered(sample.loads, key)[: max(1, console.height - LINES_AROUND)]
            shown = screen(sample, with_oldest(client, loads), history, ORDERS[key][0], console.width)
            live.update(shown, refresh=True)
            pressed = next_key(interval_s)
            if pressed == "q":
                return
            if pressed in ORDERS:
                key = pressed
                continue
            sample = take_sample(client, sample.node, sample)
            history.append((sample.in_per_s, sample.out_per_s))


def screen(
    sample: Sample, loads: Sequence[Load], history: Sequence[tuple[float, float]], order: str, width: int
) -> Group:
    """The whole picture: figures of the node, its rates over time, the rows."""
    figures = {column.title: column.text(sample) for column in FIGURES}
    title = Text.assemble(("disque top  ", "bold"), (figures.pop("node"), "bold cyan"))
    lines = [title, Text()]
    rates = (("in/s", "green", [rate for rate, _ in history]), ("out/s", "cyan", [rate for _, rate in history]))
    drawn = [
        Text.assemble((f"{name:<6}", "dim"), (f"{figures.pop(name):>7} ", style), (sparkline(values), style))
        for name, style, values in rates
    ]
    for name, value in figures.items():
        lines[-1].append(f"{name} ", "dim").append(f"{value}   ")
    keys = Text("q quit   order: ", "dim")
    for key, (name, _) in ORDERS.items():
        keys.append(f"{key} {name}  ", "bold" if name == order else "dim")
    hidden = len(sample.loads) - len(loads)
    sampled = int(sample.info["registered_queues"]) > MAX_QUEUES
    notes = [f"{hidden} more queues do not fit"] * (hidden > 0) + [f"only {MAX_QUEUES} queues are sampled"] * sampled
    return Group(*lines, *drawn, rich_table(COLUMNS, loads, width), Text("   ".join(notes), "dim"), keys)


def sparkline(values: Sequence[float]) -> str:
    """The values as bars, the greatest as the highest."""
    top = max(values, default=0.0) or 1.0
    return "".join(SPARKS[min(len(SPARKS) - 1, int(value / top * len(SPARKS)))] for value in values)


def _read_key(terminal: int, wait_s: float) -> str:
    readable, _, _ = select.select([terminal], [], [], wait_s)
    return os.read(terminal, 1).decode("latin-1") if readable else ""


@contextlib.contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """A function that waits so many seconds for a key and returns it, or nothing."""
    terminal = sys.stdin.fileno()
    settings = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    try:
        yield (
            lambda wait_s: (
                os.read(terminal, 1).decode("latin-1") if select.select([terminal], [], [], wait_s)[0] else ""
            )
        )
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, settings)
