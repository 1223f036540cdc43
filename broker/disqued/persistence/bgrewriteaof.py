"""BGREWRITEAOF: write the append only file anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.command import Command
from disqued.errors import ReplyError

if TYPE_CHECKING:
    from disqued.core.session import Session
    from disqued.core.state import NodeState


def bgrewriteaof(_state: NodeState, _session: Session, _args: list[bytes]) -> None:
    """Refuse: this node keeps its jobs in memory only."""
    raise ReplyError("ERR There is no append only file to rewrite: this version keeps jobs in memory only")


COMMAND: Final[Command] = Command(
    "bgrewriteaof",
    1,
    ("readonly", "admin"),
    bgrewriteaof,
    "server",
    "Writes the append only file anew in the background.",
    complexity="O(jobs)",
)
