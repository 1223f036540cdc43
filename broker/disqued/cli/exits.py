"""Exit statuses of `disque`, one table for code, `--help` and documentation.

The original ends with 0 whatever the server replied; a script then has to compare texts to see that a job was refused.
Here an error reply is visible in the status, and usage and connection faults can be told from it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Self


class Exit(IntEnum):
    """What the exit status tells; `meaning` is the sentence shown to people."""

    meaning: str

    def __new__(cls, status: int, meaning: str) -> Self:
        """An integer that carries its explanation."""
        member = int.__new__(cls, status)
        member._value_ = status
        member.meaning = meaning
        return member

    OK = 0, "done"
    REFUSED = 1, "the server answered with an error, or a file is damaged"
    USAGE = 2, "unknown option or bad arguments"
    CONNECTION = 3, "no connection to the server, or lost"
    INTERRUPTED = 130, "interrupted by Ctrl-C"


def exit_table() -> str:
    """The statuses as lines for `--help`."""
    return "\n".join(f"  {status.value:>3}  {status.meaning}" for status in Exit)
