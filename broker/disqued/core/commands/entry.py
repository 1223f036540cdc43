"""A command of one node: its row, unpacked for the dispatcher, and what the node counts about it."""

from __future__ import annotations

from typing import Any, Final

from mypy_extensions import i64

from disqued.core.clients.session import Session
from disqued.core.commands.command import Command
from disqued.core.telemetry.histogram import PER_NS, Histogram

_SPENT_NS: Final[tuple[int, ...]] = (
    *(10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000),
    *(50_000_000, 100_000_000, 500_000_000, 1_000_000_000),
)


class CommandEntry:
    """One command of one node."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self.name = command.name.encode()
        self.handler = command.handler
        self.arity: i64 = command.arity
        self.most_words: i64 = command.most_words
        self.needs_memory: bool = "denyoom" in command.flags
        self.needs_log: bool = command.needs_log
        self.needs_clock: bool = command.needs_clock
        self.allowed_loading: bool = "loading" in command.flags
        self.allowed_ending: bool = self.allowed_loading or (
            "readonly" in command.flags and "admin" not in command.flags
        )
        """Whether the command changes nothing that the file of a controlled shutdown has."""
        self.fast: bool = "fast" in command.flags
        self.audited: bool = command.may_be_audited
        self.before_auth: bool = command.before_auth
        self.allowed_paused: bool = command.allowed_paused
        self._key = command.name.encode()
        self._keys: dict[bytes, bytes] | None = (
            None if command.subcommands is None else dict(zip(command.subcommands, command.keys[1:], strict=True))
        )
        self.calls: i64 = 0
        self.done: i64 = 0
        """Calls that ended without an error."""
        self.failed: i64 = 0
        """Requests that ended with an error, in the command or before it began."""
        self.latency = Histogram(_SPENT_NS, PER_NS)
        """The duration of calls in nanoseconds, without the time for which clients are blocked."""

    def reset(self) -> None:
        """Set all counts to zero."""
        self.calls = 0
        self.done = 0
        self.failed = 0
        self.latency.reset()

    def accepts(self, words: i64) -> bool:
        """Whether a request with this number of words, the name included, is valid."""
        arity = self.arity
        if arity > 0:
            return words == arity
        return -arity <= words <= self.most_words

    def key(self, args: list[bytes]) -> bytes:
        """How rules of users name what a request runs; for an unknown subcommand a name that no rule has."""
        keys = self._keys
        if keys is None or len(args) < 2:
            return self._key
        key = keys.get(args[1].upper())
        return self._key + b"|" + args[1].lower() if key is None else key

    def may_follow(self, state: Any, session: Session, args: list[bytes]) -> bool:
        """Whether a request may start while requests of the same client wait for their replies."""
        may_follow = self.command.may_follow
        return may_follow is not None and may_follow(state, session, args)

    def wants_memory(self, state: Any, args: list[bytes]) -> bool:
        """Whether a request must be refused while memory is short."""
        if not self.needs_memory:
            return False
        needs_nothing = self.command.needs_nothing
        return needs_nothing is None or not needs_nothing(state, args)
