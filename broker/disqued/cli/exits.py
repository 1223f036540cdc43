"""The exit statuses of `disque`: one table for code, `--help` and documentation.

The original exits with 0 even after an error reply, so a script has to compare texts to see that a job was refused.
Here the status distinguishes error replies, usage errors and connection errors.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Self


class Exit(IntEnum):
    """An exit status; `meaning` is its description in the help."""

    meaning: str

    def __new__(cls, status: int, meaning: str) -> Self:
        """Create an integer with a description."""
        member = int.__new__(cls, status)
        member._value_ = status
        member.meaning = meaning
        return member

    OK = 0, "success"
    REFUSED = 1, "error reply from the server, or damaged file"
    USAGE = 2, "invalid option or argument"
    CONNECTION = 3, "cannot connect to the server, or connection lost"
    INTERRUPTED = 130, "interrupted by Ctrl-C"


def exit_table() -> str:
    """Return the statuses as lines for `--help`."""
    return "\n".join(f"  {status.value:>3}  {status.meaning}" for status in Exit)
