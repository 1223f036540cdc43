"""A room of the node as a value: what it adds to the whole.

`disqued.node` holds the list of all of them; a room plugs in by one line there.
"""

from __future__ import annotations

from dataclasses import dataclass

from disqued.core.command import Command


@dataclass(frozen=True)
class Subsystem:
    """One room: its name and the commands it owns."""

    name: str
    commands: tuple[Command, ...]
