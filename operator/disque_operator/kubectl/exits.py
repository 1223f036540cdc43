"""Exit statuses of `kubectl disque`, one table for code, `--help` and documentation; numbers are those of `disque`."""

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
    REFUSED = 1, "Kubernetes or a node said no, what was waited for did not come, or the cluster is not Ready (status)"
    USAGE = 2, "unknown option or bad arguments"
    CONNECTION = 3, "no connection to Kubernetes or to a node"
    INTERRUPTED = 130, "interrupted by Ctrl-C"


def exit_table() -> str:
    """The statuses as lines for `--help`."""
    return "\n".join(f"  {status.value:>3}  {status.meaning}" for status in Exit)
