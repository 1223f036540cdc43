"""Files as the node sees them: it starts work on a file, and the owner of the work is told when it is done.

The node never waits for a slow disk. It starts a `DiskWork` (`Disk.start`) and continues; finished work is returned
through `Node.disk_done`, but for work that is finished when `start` returns. Work on one file is done in the order in
which it was started, but that an APPEND does not wait for a SYNC. The server does it with system calls and threads, the
simulator in memory and with faults.
"""

from __future__ import annotations

from typing import Final, Protocol

from mypy_extensions import i64, mypyc_attr

OPEN: Final = 0
"""Make the file unless it exists, and have it ready to append to. `size` becomes its size in bytes."""
APPEND: Final = 1
"""Write all of `data` behind the end of the file. When it fails nothing of it is left in the file."""
SYNC: Final = 2
"""What was written so far survives a loss of power."""
REPLACE: Final = 3
"""Sync the file and give it the name `other`, whose file is gone then: a reader finds the old or the new one, even
after a loss of power. Work on `other` that is started later is done with the new file."""
REMOVE: Final = 4
"""Delete the file; one that does not exist is no error."""
READ: Final = 5
"""Read up to `size` bytes from `offset` on into `data`, all up to the end of the file if there are fewer. `file_bytes`
becomes the size of the whole file."""
TRUNCATE: Final = 6
"""Cut the file off at `size` bytes, and sync it."""
KEEP: Final = 7
"""Give the file the second name `other` (a link, or a copy), which must not exist, so that it outlives a REPLACE."""
CLOSE: Final = 8
"""The file is not needed open any more."""
LIST: Final = 9
"""The names of all files that begin with `name` become `data`, sorted."""

VERB_NAMES: Final = (
    "open",
    "write to",
    "sync",
    "replace",
    "remove",
    "read",
    "truncate",
    "keep a copy of",
    "close",
    "list files of",
)


@mypyc_attr(allow_interpreted_subclasses=True)
class DiskOwner:
    """Starts work on files, and is told when it is done."""

    def disk_done(self, work: DiskWork) -> None:
        """Work that this owner started is finished, or failed (`work.error`)."""
        raise NotImplementedError


class DiskWork:
    """One thing to be done with the file of that name in the data directory; `owner` is told when it is done."""

    def __init__(self, verb: i64, name: str, owner: DiskOwner | None = None) -> None:
        self.verb: i64 = verb
        self.name = name
        self.owner = owner
        self.other = ""
        self.data: list[bytes] = []
        self.offset: i64 = 0
        self.size: i64 = 0
        self.direct: bool = True
        """Whether a short APPEND may be done at once; not for a file that may be on another, slower disk."""
        self.ahead: bool = False
        """Whether OPEN gives the file space ahead of its end, filled with zeros, until it is closed.

        A SYNC need not write the size of the file then. READ and `size` do not show the space. A file that was not
        closed may end with zeros when it is opened the next time.
        """
        self.quick: bool = False
        """Whether the node may wait for this SYNC while the disk needs less than a millisecond for one."""
        self.finished: bool = False
        self.spent_ms: i64 = 0
        """How long `start` took, if it is finished then."""
        self.error = ""
        """What went wrong, as the system says it; empty if nothing did."""
        self.full: bool = False
        """It failed for lack of space, which others may give back at any time."""
        self.missing: bool = False
        """It failed because there is no such file."""
        self.file_bytes: i64 = 0


class Disk(Protocol):
    """What does the work."""

    def start(self, work: DiskWork) -> None:
        """Begin; `work.finished` when it is done already, otherwise `Node.disk_done` follows."""

    def perform(self, work: DiskWork) -> None:
        """Do it now, after all that was started on that file, and wait for it: for a node that loads or ends.

        `Node.disk_done` still follows for what was started.
        """
