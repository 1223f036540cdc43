"""The errors for clients that add jobs while the append-only file cannot be written: the cause and what to do."""

from __future__ import annotations

from typing import Final

_START: Final = "Errors writing to the AOF file: "
_OTHERWISE: Final = "or keep jobs in memory only (CONFIG SET appendonly no)"

SLOW: Final = (
    f"{_START}The disk has not finished for more than two seconds. New jobs are refused until it has. See what keeps "
    f"it busy, {_OTHERWISE}"
)
NOT_THERE_YET: Final = (
    f"{_START}It must be rewritten first, and that is not done yet. New jobs are refused until it is. If that "
    f"takes long, see what the log says, {_OTHERWISE}"
)


def not_written(error: str, *, is_full: bool) -> str:
    """The error after a failed write, with the cause that the system reported."""
    what_to_do = "Free space on the disk" if is_full else "See what is wrong with the disk"
    return (
        f"{_START}{error}. It is tried again every second, and new jobs are refused until it can be written. "
        f"{what_to_do}, {_OTHERWISE}"
    )


def not_synced(error: str) -> str:
    """The error after a failed sync, with the cause that the system reported."""
    return (
        f"{_START}{error}. What was written may not be on the disk, so the file is rewritten from memory, and new "
        f"jobs are refused until that is done. See what is wrong with the disk, {_OTHERWISE}"
    )
