"""What is wrong with bytes on the bus."""

from __future__ import annotations


class BusError(Exception):
    """The bytes of a link are no frames: the link is closed, with this text in the log, and nothing else happens."""
