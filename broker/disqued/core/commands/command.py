"""What a command is: one row of the command table.

The table (composed in `disqued.node`) is read by the dispatcher, by COMMAND, by the documentation and by the
completion of the command line. A row is a constant shared by all nodes of a process; what a node counts about a
command is its own `CommandEntry` (core.commands.entry).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from disqued.core.clients.session import Session

Handler: TypeAlias = Callable[[Any, Session, list[bytes]], None]
"""Gets the `NodeState` (which this package, below it, does not know), the client and the words of the request."""


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
    needs_log: bool = False
    """Refused while the append only file can not be written."""
    needs_nothing: Callable[[Any, list[bytes]], bool] | None = None
    """Whether a request that is about to be refused for lack of memory can be answered without any."""
    before_auth: bool = False
    """Runs on connections that still have to authenticate (no flag of its own: COMMAND shows the original's flags)."""
