"""Seeds: names and addresses by which a node finds its cluster by itself, looked up again and again."""

from __future__ import annotations

from disqued.core.state import NodeState


def found(state: NodeState, name: bytes, addresses: list[bytes]) -> None:
    """A name was looked up."""
