"""What a client reads that adds a job while the append only file can not be written: what happened and what to do."""

from __future__ import annotations

from typing import Final

_START: Final = "Errors writing to the AOF file: "
_OTHERWISE: Final = "or keep jobs in memory only (CONFIG SET appendonly no)"

SLOW: Final = (
    f"{_START}The disk has not finished for more than two seconds. New jobs are refused until it has. See what keeps "
    f"it busy, {_OTHERWISE}"
)
NOT_THERE_YET: Final = (
    f"{_START}It has to be written anew first, and that is not done yet. New jobs are refused until it is. If that "
    f"takes long, see what the log says, {_OTHERWISE}"
)


def not_written(error: str, *, is_full: bool) -> str:
    """It could not be written, for a reason that the system gave."""
    what_to_do = "Free space on the disk" if is_full else "See what is wrong with the disk"
    return (
        f"{_START}{error}. It is tried again every second, and new jobs are refused until it can be written. "
        f"{what_to_do}, {_OTHERWISE}"
    )


def not_synced(error: str) -> str:
    """It could not be synced, for a reason that the system gave."""
    return (
        f"{_START}{error}. What was written may not be on the disk, so the file is written anew from memory, and new "
        f"jobs are refused until that is done. See what is wrong with the disk, {_OTHERWISE}"
    )
