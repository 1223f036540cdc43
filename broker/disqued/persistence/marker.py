"""The restart marker: a small file which says that the append-only file beside it is from a controlled shutdown.

`SHUTDOWN REWRITE-AOF` writes it when `aof-restart-marker` is on. The next start queues the jobs as they were
(`persistence.restart`), without a change of the configuration. Queueing them twice would deliver at-most-once jobs
twice, so a marker is valid for one file, as it was at the shutdown, and for one start:

1. The file ends with a *seal*, a DELJOB of an ID that was created for this purpose and exists nowhere else. The marker
   has the seal and the size of the file. A file that grew after the seal or was rewritten does not match, so a marker
   that was left by mistake, or copied, has no effect.
2. The marker is written under a temporary name, the file gets its name, then the marker gets its own; each is synced
   first. Whenever the process or the machine crashes, there is either no marker or the file that it belongs to.
3. After loading, and before any client is served, the marker is truncated and synced, then removed. If its name returns
   after a power loss it is empty and has no effect. A node that cannot invalidate the marker does not serve.
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

MARKER: Final = ".restart"
"""The suffix that makes the name of the append-only file that of its marker."""
UNFINISHED_RESTORE: Final = "restore.unfinished"
"""A file in the directory while a restore of a backup writes to it: until it is gone, jobs are missing."""
_TEXT: Final = b"controlled shutdown: %d bytes, sealed by %b\n"
_PATTERN: Final = re.compile(rb"controlled shutdown: ([0-9]{1,18}) bytes, sealed by (D-[^ \n]{38})\n")
_MOST_BYTES: Final = 200
"""A limit above the size of any marker."""


def text_of(file_bytes: int, seal_id: bytes) -> bytes:
    """The marker of a file with this size and this seal."""
    return _TEXT % (file_bytes, seal_id)


class RestartMarker:
    """The marker of one append-only file."""

    def __init__(self, state: NodeState, file_name: str) -> None:
        self._state = state
        self._file_name = file_name
        self.name = file_name + MARKER
        self._beside = ""
        self._seal_id = b""
        self.there: bool = False
        """Whether the marker exists."""
        self.counts: bool = False
        """Whether it belongs to the append-only file as it is."""

    def _perform(self, work: DiskWork) -> str:
        """Do disk work and wait for it. Returns the error, empty on success."""
        self._state.host.disk.perform(work)
        return f"can't {VERB_NAMES[work.verb]} {work.name}: {work.error}" if work.error else ""

    # --- at the end of a run ------------------------------------------------------------------------------------------

    def seal(self) -> bytes:
        """Return the last record of the file, which identifies it."""
        self._seal_id = self._state.job_ids.make(0, at_least_once=False)
        return forget(self._seal_id)

    def preparation(self, file_bytes: i64) -> list[DiskWork]:
        """The disk work that writes the marker of a sealed file under a temporary name, in order."""
        self._beside = f"temp-rewriteaof-marker-{self._state.host.facts().process_id}.aof"
        write = DiskWork(disk.APPEND, self._beside)
        write.data = [text_of(file_bytes, self._seal_id)]
        remove, open_it = DiskWork(disk.REMOVE, self._beside), DiskWork(disk.OPEN, self._beside)
        return [remove, open_it, write, DiskWork(disk.SYNC, self._beside)]

    def naming(self) -> DiskWork:
        """The disk work that renames the prepared marker, after the file has its name."""
        work = DiskWork(disk.REPLACE, self._beside)
        work.other = self.name
        return work

    def removal(self) -> list[DiskWork]:
        """The disk work that removes the prepared marker, because the node continues."""
        return [DiskWork(disk.REMOVE, self._beside)] if self._beside else []

    # --- at the start of a run ----------------------------------------------------------------------------------------

    def look(self) -> str:
        """Find out whether the marker exists and belongs to the file. Returns the error, empty on success."""
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
        if text and not self.counts and not error:  # an empty marker was used, and its name returned after a power loss
            self._state.host.log(
                "warning",
                f"{self.name} does not belong to {self._file_name} as it is now, and is removed: what that file has is "
                "not queued at once",
            )
        return error

    def _compare(self, file_bytes: int, seal: bytes) -> str:
        """Find out whether the marker names this file. Returns the error, empty on success."""
        tail = DiskWork(disk.READ, self._file_name)
        tail.offset = max(file_bytes - len(seal), 0)
        tail.size = len(seal)
        error = self._perform(tail)
        self.counts = not error and tail.file_bytes == file_bytes and b"".join(tail.data) == seal
        return "" if tail.missing else error

    def use_up(self) -> str:
        """Invalidate the marker permanently. Returns the error, empty on success."""
        if not self.there:
            return ""
        error = self._perform(DiskWork(disk.TRUNCATE, self.name))
        if not error:
            self.there = False
            self._perform(DiskWork(disk.REMOVE, self.name))
        return error
