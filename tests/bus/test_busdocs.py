"""The page about the bus is the one that the tables make, and says of every message what it is."""

from __future__ import annotations

from pathlib import Path

from disqued.node import ROOMS
from disqued.testing.busdocs import page

PAGE = Path(__file__).parents[2] / "docs" / "protocol" / "bus.md"


def test_the_page_is_generated() -> None:
    assert PAGE.read_text() == page(), "python -m disqued.testing.busdocs > docs/protocol/bus.md"


def test_every_message_and_every_feature_is_on_it() -> None:
    text = page()

    for kind, name in ROOMS.message_table.names.items():
        assert f"| {kind} | {name} |" in text
    for bit in (1 << number for number in range(16) if ROOMS.features >> number & 1):
        assert f"\n* {bit}: " in text
