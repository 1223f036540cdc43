"""The messages of the cluster bus that one node sent and received, by type."""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.telemetry.counter import Counters


class Traffic:
    """The messages of one type."""

    def __init__(self, counters: Counters) -> None:
        self.sent = counters.cell()
        self.sent_bytes = counters.cell()
        self.received = counters.cell()

    def count_sent(self, size: i64) -> None:
        """Count a frame of `size` bytes for another node."""
        self.sent.value += 1
        self.sent_bytes.value += size
