"""Commands and bus messages in the tables of one node: their rows, unpacked for the dispatcher, and what it counts."""

from __future__ import annotations

from mypy_extensions import i64

from disqued.core.command import Command
from disqued.core.message import Message
from disqued.core.stats import Traffic


class CommandEntry:
    """One command of one node."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self.name = command.name.encode()
        self.handler = command.handler
        self.arity: i64 = command.arity
        self.needs_memory: bool = "denyoom" in command.flags
        self.needs_log: bool = command.needs_log
        self.allowed_loading: bool = "loading" in command.flags
        self.fast: bool = "fast" in command.flags
        self.before_auth: bool = command.before_auth
        self.calls: i64 = 0
        self.spent_ns: i64 = 0

    def accepts(self, words: i64) -> bool:
        """Whether a request of that many words, the name included, is complete."""
        arity = self.arity
        if arity > 0:
            return words == arity
        return words >= -arity


class MessageEntry:
    """One type of bus message of one node."""

    def __init__(self, message: Message, traffic: Traffic) -> None:
        self.handler = message.handler
        self.from_anyone = message.from_anyone
        self.traffic = traffic
