"""Counts error replies to clients by their code."""

from __future__ import annotations

from typing import Final

from disqued.core.telemetry.counter import Count, Counters
from disqued.errors import CODES

OTHER_CODE: Final = "other"
"""Stands for all unknown error codes, which only DEBUG ERROR replies with."""


class ErrorCounts:
    """The errors of one node."""

    def __init__(self, counters: Counters) -> None:
        self.by_code: dict[str, Count] = {code: counters.cell() for code in (*CODES, OTHER_CODE)}

    def add(self, code: str) -> None:
        """Count an error reply."""
        count = self.by_code.get(code)
        if count is None:
            count = self.by_code[OTHER_CODE]
        count.value += 1
