"""The errors for clients that add jobs while the append-only file cannot be written: the cause and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState

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


class WriteRefusal:
    """Whether this node refuses new jobs because of its append-only file."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self.why = ""
        """The cause and what to do; empty while new jobs are accepted."""

    def set(self, why: str) -> None:
        """Refuse new jobs for this reason, or accept them if it is empty. Log a change."""
        if why == self.why:
            return
        self.why = why
        state = self._state
        if why:
            state.write_refusal = "MISCONF " + why
            state.host.log("warning", f"No new jobs are taken. {why}")
        else:
            state.write_refusal = ""
            state.host.log("notice", "New jobs are taken again: the disk does what it should, or is not needed")
