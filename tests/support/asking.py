"""Talking to a node in virtual time without spelling out the type of each reply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from disqued.testing.local import LocalClient


def ask(client: LocalClient, *words: bytes | str | int) -> Any:
    """The reply to a command, of whatever shape."""
    return client.call(*words)


def pairs(client: LocalClient, *words: bytes | str | int) -> dict[bytes, Any]:
    """A reply that is a flat list of names and values."""
    flat = ask(client, *words)
    return dict(zip(flat[::2], flat[1::2], strict=True))
