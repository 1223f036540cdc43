"""The latency monitor: for each kind of event, the slowest occurrence of each second."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

SAMPLES: Final = 160


@dataclass
class LatencySeries:
    """Samples of one kind of event, oldest first: (unix second, milliseconds)."""

    samples: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=SAMPLES))
    worst_ms: int = 0

    def add(self, at_s: int, spent_ms: int) -> None:
        """Add an occurrence; only the slowest one of a second is kept."""
        self.worst_ms = max(self.worst_ms, spent_ms)
        if self.samples and self.samples[-1][0] == at_s:
            spent_ms = max(spent_ms, self.samples.pop()[1])
        self.samples.append((at_s, spent_ms))


class LatencyMonitor:
    """The series of one node, by the name of the event."""

    def __init__(self) -> None:
        self.series: dict[bytes, LatencySeries] = {}

    def add(self, event: bytes, at_s: int, spent_ms: int) -> None:
        """Add an occurrence of an event."""
        self.series.setdefault(event, LatencySeries()).add(at_s, spent_ms)

    def reset(self, events: list[bytes]) -> int:
        """Remove the named series, or all; returns how many there were."""
        removed = [event for event in (events or list(self.series)) if self.series.pop(event, None) is not None]
        return len(removed)
