"""`--latency` and `--latency-history`: measure the latency of PING continuously.

On a terminal `--latency` updates one line until Ctrl-C, and `--latency-history` prints one line per period. In a pipe
`--latency` measures one period and exits, so scripts can use it.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from disqued.cli.connection import Connection
from disqued.cli.exits import Exit

if TYPE_CHECKING:
    import argparse

    from disqued.cli.endpoint import Endpoint

PAUSE_S = 0.01
HISTORY_S = 15.0
PIPED_S = 1.0
RETURN_AND_CLEAR = "\r\x1b[2K"


@dataclass
class Samples:
    """Latencies of one period, in ms."""

    count: int = 0
    total_ms: float = 0.0
    least_ms: float = 0.0
    greatest_ms: float = 0.0

    def add(self, latency_ms: float) -> None:
        """Add one sample."""
        self.least_ms = min(self.least_ms, latency_ms) if self.count else latency_ms
        self.greatest_ms = max(self.greatest_ms, latency_ms)
        self.total_ms += latency_ms
        self.count += 1

    def __str__(self) -> str:
        average_ms = self.total_ms / self.count if self.count else 0.0
        return f"min: {self.least_ms:.2f}, max: {self.greatest_ms:.2f}, avg: {average_ms:.2f} ({self.count} samples)"


def run(endpoint: Endpoint, options: argparse.Namespace) -> Exit:
    """Measure until interrupted; `--latency` in a pipe measures one period."""
    history: bool = options.latency_history
    live = sys.stdout.isatty()
    period_s: float = options.interval_s or (HISTORY_S if history else PIPED_S)
    ends = history or not live
    with Connection(endpoint) as connection:
        while True:
            samples, began_s = Samples(), time.monotonic()
            while not ends or time.monotonic() - began_s < period_s:
                sent_s = time.perf_counter()
                connection.ask([b"PING"])
                samples.add((time.perf_counter() - sent_s) * 1000)
                if live:
                    _write(RETURN_AND_CLEAR + str(samples))
                time.sleep(PAUSE_S)
            line = f"{samples} -- {time.monotonic() - began_s:.2f} seconds range" if history else str(samples)
            _write((RETURN_AND_CLEAR if live else "") + line + "\n")
            if not history:
                return Exit.OK


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
