"""The page about the bus describes every message and every feature."""

from __future__ import annotations

from disqued.node import ROOMS
from docs.generate.bus import page


def test_every_message_and_every_feature_is_on_it() -> None:
    text = page()

    for kind, name in ROOMS.message_table.names.items():
        assert f"| {kind} | {name} |" in text
    for bit in (1 << number for number in range(16) if ROOMS.features >> number & 1):
        assert f"\n* {bit}: " in text
