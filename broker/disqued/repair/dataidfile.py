"""The data ID of this node: a number that other nodes take for the jobs that it has.

A node that starts without jobs makes a new one, and the others learn from that that it lost its copies. With an
append-only file it is kept beside that, in `<appendfilename>.data-id`; without one it is only in memory, until a
controlled shutdown writes a file. The file is replaced as a whole. It is emptied when the node stops to keep an
append-only file, so that a later start with the old one does not pass for a start with all jobs.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from disqued.core.host import disk
from disqued.core.host.disk import VERB_NAMES, DiskOwner, DiskWork

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState

SUFFIX: Final = ".data-id"
DATA_ID_BYTES: Final = 20
_TEXT: Final = re.compile(rb"([0-9a-f]{40})\n")
_MOST_BYTES: Final = 100
"""A limit above the size of any such file."""
_RETRY_MS: Final = 1000


def _of_run(state: NodeState) -> bytes:
    """A data ID that no other run of a node has: its incarnation is random."""
    return blake2b(state.view.node_id + state.incarnation, digest_size=DATA_ID_BYTES).digest()


class DataIdFile(DiskOwner):
    """The data ID of one node, and its file."""

    def __init__(self, state: NodeState) -> None:
        super().__init__()
        self._state = state
        self.data_id = b""
        """The data ID; empty until the node has loaded its jobs."""
        self._written = b""
        """What this run wrote to the file; empty if it did not, or emptied it."""
        self._steps: list[DiskWork] = []
        """The disk work that remains of a write."""
        self._writing = b""
        self._retry_ms = 0
        self._failed = False

    @property
    def name(self) -> str:
        """The name of the file."""
        return self._state.config.appendfilename + SUFFIX

    def decide(self) -> None:
        """The node has loaded its jobs: take the data ID from the file, or make a new one if there are no jobs."""
        kept = self._read() if self._state.lifecycle.table.count > 0 else b""
        self.data_id = kept or _of_run(self._state)
        if kept:
            self._written = self._named()
        elif self._keeps:
            self.write_now()

    @property
    def _keeps(self) -> bool:
        """Whether there must be a file: other nodes may have copies of the jobs in the append-only file."""
        return self._state.config.appendonly and self._state.view.size > 1

    def _read(self) -> bytes:
        work = DiskWork(disk.READ, self.name)
        work.size = _MOST_BYTES
        self._state.host.disk.perform(work)
        found = _TEXT.fullmatch(b"".join(work.data))
        return b"" if found is None else bytes.fromhex(found[1].decode())

    def _text(self) -> bytes:
        """What must be in the file."""
        return self._named() if self._keeps else b""

    def _named(self) -> bytes:
        """The file with the data ID."""
        return self.data_id.hex().encode() + b"\n"

    def write_now(self) -> None:
        """Write the file, and wait for it: the node has not logged a job yet, or ends with all jobs in its file."""
        self._steps = []
        for work in self._work(self._named()):
            self._state.host.disk.perform(work)
            if work.error:
                self._fail(work)
                return
        self._written = self._writing

    def moved(self) -> None:
        """The file is in another directory."""
        self._written = b""

    def visit(self) -> None:
        """Write what is not written, unless that failed a moment ago."""
        if not self._steps and self._text() != self._written and self._state.now_ms >= self._retry_ms:
            self._steps = self._work(self._text())
            self._next()

    def _work(self, text: bytes) -> list[DiskWork]:
        """The disk work that replaces the file, in order."""
        self._writing = text
        beside = f"temp-{self.name}"
        write = DiskWork(disk.APPEND, beside, self)
        write.data = [self._writing]
        replace = DiskWork(disk.REPLACE, beside, self)
        replace.other = self.name
        return [DiskWork(disk.REMOVE, beside, self), DiskWork(disk.OPEN, beside, self), write, replace]

    def _next(self) -> None:
        """Start the next step; those that are done at once need no further turn."""
        while self._steps:
            work = self._steps[0]
            self._state.host.disk.start(work)
            if not work.finished or not self._take(work):
                return

    def disk_done(self, work: DiskWork) -> None:
        """Continue with the next step."""
        if self._steps and work is self._steps[0] and self._take(work):
            self._next()

    def _take(self, work: DiskWork) -> bool:
        """Take note of a step that is done; False if it failed."""
        if work.error:
            self._fail(work)
            return False
        del self._steps[0]
        if not self._steps:
            self._written = self._writing
            self._failed = False
        return True

    def _fail(self, work: DiskWork) -> None:
        if not self._failed:
            self._state.host.log(
                "warning",
                f"Data ID not saved, trying again every second: can't {VERB_NAMES[work.verb]} {work.name}: "
                f"{work.error}",
            )
        self._failed = True
        self._steps = []
        self._retry_ms = int(self._state.now_ms) + _RETRY_MS
