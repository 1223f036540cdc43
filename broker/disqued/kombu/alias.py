"""Tells kombu the names of the transport."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

TRANSPORT: Final = "disqued.kombu.transport:Transport"
NAMES: Final = ("disque", "disques")


def register() -> None:
    """Add the names to those that kombu knows. Another version of kombu may keep them elsewhere: then nothing happens.

    Every program that uses kombu runs this, also programs with another broker.
    """
    with suppress(Exception):
        from kombu.transport import TRANSPORT_ALIASES  # noqa: PLC0415 - kombu may be absent

        for name in NAMES:
            TRANSPORT_ALIASES.setdefault(name, TRANSPORT)
