"""LOADJOB: a record of the append-only file, not a command for clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.commands.command import Command
from disqued.errors import ReplyError

if TYPE_CHECKING:
    from disqued.core.clients.session import Session
    from disqued.core.runtime.state import NodeState


def loadjob(_state: NodeState, _session: Session, _args: list[bytes]) -> None:
    """Refuse the command: clients cannot load jobs."""
    raise ReplyError("ERR LOADJOB is a special command only processed from AOF")


COMMAND: Final[Command] = Command(
    "loadjob",
    2,
    ("write",),
    loadjob,
    "jobs",
    "Refused: this is a record of the append only file.",
    "serialized-job",
    categories=("dangerous",),
)
