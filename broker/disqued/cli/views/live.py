"""The live screen of `disque top`, controlled by keys."""

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

from disqued.cli.views.figures import COLUMNS, FIGURES, ORDERS, ordered
from disqued.cli.views.load import MAX_QUEUES, Sample, take_sample, with_oldest
from disqued.cli.views.terminal import rich_table
from disqued.client import Client

HISTORY = 60
"""Number of samples in the sparklines."""
SPARKS = "▁▂▃▄▅▆▇█"
LINES_AROUND_ROWS = 5
"""Lines for the header of the table, the rule below it, an empty line above and below, and the notes."""


def watch(client: Client, sample: Sample, interval_s: float, key: str) -> None:
    """Redraw until the user presses `q` or Ctrl-C. A key of `ORDERS` changes the order at once."""
    console = Console()
    history: deque[tuple[float, float]] = deque(maxlen=HISTORY)
    with _keys() as next_key, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            above, below = figures(sample, history), keys_and_order(ORDERS[key][0])
            taken = len(console.render_lines(Group(above, below))) + LINES_AROUND_ROWS
            loads = ordered(sample.loads, key)[: max(1, console.height - taken)]
            table = rich_table(COLUMNS, with_oldest(client, loads), console.width)
            live.update(Group(above, table, notes(sample, len(loads)), below), refresh=True)
            pressed = next_key(interval_s)
            if pressed == "q":
                return
            if pressed in ORDERS:
                key = pressed
                continue
            sample = take_sample(client, sample.node, sample)
            history.append((sample.in_per_s, sample.out_per_s))


def figures(sample: Sample, history: Sequence[tuple[float, float]]) -> Group:
    """Return the statistics of the node, and its rates over time."""
    shown = {column.title: column.text(sample) for column in FIGURES}
    title = Text.assemble(("disque top  ", "bold"), (shown.pop("node"), "bold cyan"))
    rates = (("in/s", "green", [rate for rate, _ in history]), ("out/s", "cyan", [rate for _, rate in history]))
    drawn = [
        Text.assemble((f"{name:<6}", "dim"), (f"{shown.pop(name):>7} ", style), (sparkline(values), style))
        for name, style, values in rates
    ]
    line = Text()
    for name, value in shown.items():
        line.append(f"{name} ", "dim").append(f"{value}   ")
    return Group(title, line, *drawn)


def notes(sample: Sample, rows: int) -> Text:
    """Return a line about queues that are not shown."""
    hidden = len(sample.loads) - rows
    sampled = int(sample.info["registered_queues"]) > MAX_QUEUES
    messages = [f"{hidden} more queues do not fit"] * (hidden > 0) + [f"only {MAX_QUEUES} queues are sampled"] * sampled
    return Text("   ".join(messages), "dim", no_wrap=True, overflow="ellipsis")


def keys_and_order(order: str) -> Text:
    """Return a line of the keys, with the current order in bold."""
    keys = Text("q quit   order: ", "dim")
    for key, (name, _) in ORDERS.items():
        keys.append(f"{key} {name}  ", "bold" if name == order else "dim")
    return keys


def sparkline(values: Sequence[float]) -> str:
    """Return the values as bars, scaled to the greatest."""
    top = max(values, default=0.0) or 1.0
    return "".join(SPARKS[min(len(SPARKS) - 1, int(value / top * len(SPARKS)))] for value in values)


def _read_key(terminal: int, wait_s: float) -> str:
    readable, _, _ = select.select([terminal], [], [], wait_s)
    return os.read(terminal, 1).decode("latin-1") if readable else ""


@contextlib.contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """Yield a function that waits up to the given seconds for a key, and returns it or an empty string."""
    terminal = sys.stdin.fileno()
    settings = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    try:
        yield lambda wait_s: _read_key(terminal, wait_s)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, settings)
