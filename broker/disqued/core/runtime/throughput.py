"""The throughput of a node: requests and bytes, in total and per second."""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.runtime.counters import COMMANDS, INPUT_BYTES, OUTPUT_BYTES
from disqued.core.telemetry.counter import Counters
from disqued.core.telemetry.rate import Rate


class Throughput:
    """Requests and bytes of clients."""

    def __init__(self, counters: Counters) -> None:
        self.commands = counters.of(COMMANDS)
        self.input_bytes = counters.of(INPUT_BYTES)
        self.output_bytes = counters.of(OUTPUT_BYTES)
        self.command_rate = Rate()
        self.input_rate = Rate()
        self.output_rate = Rate()

    def sample(self, now_ms: i64) -> None:
        """Sample the counters for the rates; called every 100 ms."""
        self.command_rate.sample(self.commands.value, now_ms)
        self.input_rate.sample(self.input_bytes.value, now_ms)
        self.output_rate.sample(self.output_bytes.value, now_ms)
