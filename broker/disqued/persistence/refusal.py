"""What a client reads that adds a job while the append only file can not be written: what happened and what to do."""

from __future__ import annotations

from typing import Final

_START: Final = "Errors writing to the AOF file: "
_OTHERWISE: Final = "or keep jobs in memory only (CONFIG SET appendonly no)"


def explain(error: str, *, is_full: bool = False, in_sync: bool = False) -> str:
    """Why no new jobs are taken. `error` is what the system says; it is empty when the disk does not finish."""
    if not error:
        return (
            f"{_START}The disk has not finished for more than two seconds. New jobs are refused until it has. See what "
            f"keeps it busy, {_OTHERWISE}"
        )
    if in_sync:
        return (
            f"{_START}{error}. What was written may not be on the disk, so the file is written anew from memory, and "
            f"new jobs are refused until that is done. See what is wrong with the disk, {_OTHERWISE}"
        )
    what_to_do = "Free space on the disk" if is_full else "See what is wrong with the disk"
    return (
        f"{_START}{error}. It is tried again every second, and new jobs are refused until it can be written. "
        f"{what_to_do}, {_OTHERWISE}"
    )
