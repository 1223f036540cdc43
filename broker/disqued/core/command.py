"""What a command is: one row of the command table.

The table (composed in `disqued.node`) is read by the dispatcher, by COMMAND, by the documentation and by the
completion of the command line. A row is a constant shared by all nodes of a process; what a node counts about a
command is its own `CommandEntry`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mypy_extensions import i64

if TYPE_CHECKING:
    from disqued.core.session import Session
    from disqued.core.state import NodeState

    Handler = Callable[[NodeState, Session, list[bytes]], None]


@dataclass(frozen=True)
class Command:
    """One command. `arity` counts all words, a negative one is a minimum; 0 is any."""

    name: str
    arity: int
    flags: tuple[str, ...]
    handler: Handler
    group: str
    summary: str
    syntax: str = ""
    complexity: str = "O(1)"
    since: str = "1.0.0"
    before_auth: bool = False
    """Runs on connections that still have to authenticate (no flag of its own: COMMAND shows the original's flags)."""


class CommandEntry:
    """A command in the table of one node: its row, unpacked for the dispatcher, and its statistics."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self.name = command.name.encode()
        self.handler = command.handler
        self.arity: i64 = command.arity
        self.needs_memory: bool = "denyoom" in command.flags
        self.allowed_loading: bool = "loading" in command.flags
        self.fast: bool = "fast" in command.flags
        self.without_authentication: bool = command.before_auth
        self.calls: i64 = 0
        self.spent_ns: i64 = 0
        self.errors: i64 = 0

    def accepts(self, words: i64) -> bool:
        """Whether a request of that many words, the name included, is complete."""
        arity = self.arity
        if arity >= 0:
            return arity in {0, words}
        return words >= -arity
