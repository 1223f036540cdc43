"""Errors in the bytes of the bus."""

from __future__ import annotations


class BusError(Exception):
    """The bytes of a link are not frames. The node logs this text and closes the link."""
