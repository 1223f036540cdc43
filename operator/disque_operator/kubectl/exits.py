"""Exit statuses of `kubectl disque`, with the numbers of `disque`; `--help` and the documentation show this table."""

from __future__ import annotations

from enum import IntEnum
from typing import Self


class Exit(IntEnum):
    """An exit status; `meaning` is the description that users see."""

    meaning: str

    def __new__(cls, status: int, meaning: str) -> Self:
        """Create an integer that carries its description."""
        member = int.__new__(cls, status)
        member._value_ = status
        member.meaning = meaning
        return member

    OK = 0, "success"
    REFUSED = 1, "request rejected, timed out, or cluster not Ready (status)"
    USAGE = 2, "unknown option or invalid argument"
    CONNECTION = 3, "cannot connect to Kubernetes or to a node"
    INTERRUPTED = 130, "interrupted by Ctrl-C"


def exit_table() -> str:
    """Return the statuses as lines for `--help`."""
    return "\n".join(f"  {status.value:>3}  {status.meaning}" for status in Exit)
