"""Commands to a node in virtual time, with untyped replies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from disqued.testing.local import LocalClient


def ask(client: LocalClient, *words: bytes | str | int) -> Any:
    """The reply to a command, of any type."""
    return client.call(*words)


def pairs(client: LocalClient, *words: bytes | str | int) -> dict[bytes, Any]:
    """A reply that is a flat list of names and values, as a dict."""
    flat = ask(client, *words)
    return dict(zip(flat[::2], flat[1::2], strict=True))
