"""A directive: one row of the table of directives (`config.options`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeVar

from disqued.config.kinds import Kind

Part = Literal["sockets", "clients", "process", "logging", "memory", "observation", "cluster", "persistence", "none"]
"""The part of the server that applies a directive; `none` for directives without effect."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Option(Generic[_T]):
    """One directive: its name, kind, default and properties."""

    name: str
    kind: Kind[_T]
    default: _T
    part: Part
    effect: str
    """One line about the effect, for the reference page."""
    settable: bool = False
    """Whether CONFIG SET can change the directive."""
    shown: bool = True
    """Whether CONFIG GET shows the directive."""
    rewritten: bool = True
    """Whether CONFIG REWRITE writes the directive; otherwise it keeps its lines as they are."""
    added: bool = False
    """Whether the directive does not exist in the original."""
    secret: bool = False
    """Whether the value is a password, which no log and no error shows."""
    in_file: bool = True
    """Whether a file may contain the directive; otherwise only CONFIG SET accepts it."""

    @property
    def attribute(self) -> str:
        """The name of the attribute of `Config` that holds the value."""
        return self.name.replace("-", "_")

    def of(self, config: object) -> _T:
        """The value in a `Config`, for a room that defines a directive of its own."""
        value: _T = getattr(config, self.attribute)
        return value


REDACTED: Final = "(redacted)"
"""Stands for a secret wherever directives or requests are shown."""
