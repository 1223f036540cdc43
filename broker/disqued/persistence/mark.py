"""The restart mark: a small file that says that the append only file beside it was handed on by the run that wrote it.

`SHUTDOWN REWRITE-AOF` leaves it when `aof-restart-mark` is on, and the start that finds it queues the jobs as they were
(`persistence.restart`), without anybody changing the configuration. Whoever queues them twice delivers at-most-once
jobs twice, so a mark only counts for one file, as it was handed on, and for one start:

1. The file ends with a *seal*, a DELJOB of an ID that was made for this purpose and stands nowhere else, and the mark
   names the seal and the size of the file. What is written behind the seal, and a file that is written anew, no longer
   fit: a mark that was left behind by mistake, or copied, does nothing.
2. The mark is written beside its place, the file gets its name, then the mark gets its own; each is synced before.
   Whenever the process or the machine ends there is no mark, or the file it belongs to.
3. When all is loaded, and before anybody is served, the mark is cut to nothing and that is synced, then it is removed:
   that its name comes back after a loss of power does no harm. A node that can not do so does not serve.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.core.host import disk
from disqued.core.host.disk import VERB_NAMES, DiskWork
from disqued.persistence.records import forget

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState

MARK: Final = ".restart"
"""What a mark is called: the name of the append only file, and this."""
_TEXT: Final = b"handed on: %d bytes, sealed by %b\n"
_PATTERN: Final = re.compile(rb"handed on: ([0-9]{1,18}) bytes, sealed by (D-[^ \n]{38})\n")
_MOST_BYTES: Final = 200
"""Longer than any mark."""


class RestartMark:
    """The mark of one append only file."""

    def __init__(self, state: NodeState, file_name: str) -> None:
        self._state = state
        self._file_name = file_name
        self.name = file_name + MARK
        self._beside = ""
        self._seal_id = b""
        self.there: bool = False
        """It was found,"""
        self.counts: bool = False
        """and belongs to the append only file as it is."""

    def _perform(self, work: DiskWork) -> str:
        """Have something done, and wait for it. Returns what went wrong."""
        self._state.host.disk.perform(work)
        return f"can't {VERB_NAMES[work.verb]} {work.name}: {work.error}" if work.error else ""

    # --- at the end of a run ------------------------------------------------------------------------------------------

    def seal(self) -> bytes:
        """The last record of the file that is handed on."""
        self._seal_id = self._state.job_ids.make(0, at_least_once=False)
        return forget(self._seal_id)

    def prepare(self, file_bytes: i64) -> str:
        """Write the mark for a sealed file of that size beside its place. Returns what went wrong."""
        self._beside = f"temp-rewriteaof-mark-{self._state.host.facts().process_id}.aof"
        write = DiskWork(disk.APPEND, self._beside)
        write.data = [_TEXT % (file_bytes, self._seal_id)]
        return (
            self._perform(DiskWork(disk.REMOVE, self._beside))
            or self._perform(DiskWork(disk.OPEN, self._beside))
            or self._perform(write)
            or self._perform(DiskWork(disk.SYNC, self._beside))
        )

    def leave(self) -> str:
        """Put the prepared mark in its place, once the file has its name. Returns what went wrong."""
        work = DiskWork(disk.REPLACE, self._beside)
        work.other = self.name
        return self._perform(work)

    def give_up(self) -> None:
        """Remove what was prepared: the node goes on."""
        if self._beside:
            self._perform(DiskWork(disk.REMOVE, self._beside))

    # --- at the start of a run ----------------------------------------------------------------------------------------

    def look(self) -> str:
        """See whether the mark is there and belongs to the file. Returns what went wrong; then nobody knows."""
        work = DiskWork(disk.READ, self.name)
        work.size = _MOST_BYTES
        error = self._perform(work)
        self.there = not work.missing
        if error or work.missing:
            return "" if work.missing else error
        text = b"".join(work.data)
        found = _PATTERN.fullmatch(text)
        if found is not None:
            error = self._compare(int(found[1]), forget(found[2]))
        if text and not self.counts and not error:  # an empty one was used up, and came back after a loss of power
            self._state.host.log(
                "warning",
                f"{self.name} does not belong to {self._file_name} as it is now, and is removed: what that file has is "
                "not queued at once",
            )
        return error

    def _compare(self, file_bytes: int, seal: bytes) -> str:
        """See whether the file is the one that the mark speaks of. Returns why that can not be told."""
        tail = DiskWork(disk.READ, self._file_name)
        tail.offset = max(file_bytes - len(seal), 0)
        tail.size = len(seal)
        error = self._perform(tail)
        self.counts = not error and tail.file_bytes == file_bytes and b"".join(tail.data) == seal
        return "" if tail.missing else error

    def use_up(self) -> str:
        """See that it never counts again, whatever happens. Returns what went wrong."""
        if not self.there:
            return ""
        error = self._perform(DiskWork(disk.TRUNCATE, self.name))
        if not error:
            self.there = False
            self._perform(DiskWork(disk.REMOVE, self.name))
        return error
