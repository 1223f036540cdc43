"""Bounds log lines that other programs can cause: a few per source and minute, and a bounded number of sources."""

from __future__ import annotations

from typing import Final

INTERVAL_MS: Final = 60_000
MOST_SOURCES: Final = 1000
"""The number of sources that are remembered. While there are more, lines about new ones are dropped."""


class LogLimit:
    """Allows up to `most` lines per source and minute."""

    def __init__(self, most: int = 10) -> None:
        self._most = most
        self._lines: dict[object, int] = {}
        """The lines of each source in this interval."""
        self._until_ms = 0
        """When the interval ends."""

    def allows(self, source: object, now_ms: int) -> bool:
        """Whether a line about a source may be written now."""
        if now_ms >= self._until_ms:
            self._lines.clear()
            self._until_ms = now_ms + INTERVAL_MS
        lines = self._lines.get(source, 0)
        if lines >= self._most or (lines == 0 and len(self._lines) >= MOST_SOURCES):
            return False
        self._lines[source] = lines + 1
        return True
