"""The data ID of this node: a number that other nodes take for the jobs that it has.

A node that starts without jobs makes a new one, and the others learn from that that it lost its copies. With an
append-only file it is kept beside that, in `<appendfilename>.data-id`; without one it is only in memory, until a
controlled shutdown writes a file. The file is replaced as a whole, and emptied when the node stops to keep an
append-only file, so that a later start with the old one does not pass for a start with all jobs.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from disqued.core.runtime.wholefile import WholeFile

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState

SUFFIX: Final = ".data-id"
DATA_ID_BYTES: Final = 20
_TEXT: Final = re.compile(rb"([0-9a-f]{40})\n")
_MOST_BYTES: Final = 100
"""A limit above the size of any such file."""


def _of_run(state: NodeState) -> bytes:
    """A data ID that no other run of a node has: its incarnation is random."""
    return blake2b(state.view.node_id + state.incarnation, digest_size=DATA_ID_BYTES).digest()


class DataIdFile(WholeFile):
    """The data ID of one node, and its file."""

    def __init__(self, state: NodeState) -> None:
        super().__init__(state, "Data ID")
        self.data_id = b""
        """The data ID; empty until the node has loaded its jobs."""
        self._written = b""
        """What this run wrote to the file; empty if it did not, or emptied it."""
        self._writing = b""

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.state.config.appendfilename + SUFFIX

    def decide(self) -> None:
        """The node has loaded its jobs: take the data ID from the file, or make a new one if there are no jobs."""
        kept = self._kept() if self.state.lifecycle.table.count > 0 else b""
        self.data_id = kept or _of_run(self.state)
        if kept:
            self._written = self._named()
        elif self._keeps:
            self.save_now()

    @property
    def _keeps(self) -> bool:
        """Whether there must be a file: other nodes may have copies of the jobs in the append-only file."""
        return self.state.config.appendonly and self.state.view.size > 1

    def _kept(self) -> bytes:
        """The data ID in the file; empty if there is none."""
        found = _TEXT.fullmatch(b"".join(self.read(_MOST_BYTES).data))
        return b"" if found is None else bytes.fromhex(found[1].decode())

    def _named(self) -> bytes:
        """The file with the data ID."""
        return self.data_id.hex().encode() + b"\n"

    def _wanted(self) -> bytes:
        """What must be in the file."""
        return self._named() if self._keeps else b""

    def text(self) -> bytes:
        """What `_writing` says."""
        return self._writing

    def replaced(self) -> None:
        """Note what is in the file."""
        self._written = self._writing

    def save_now(self) -> None:
        """Write the file, and wait for it: the node has not logged a job yet, or ends with all jobs in its file."""
        self._writing = self._named()
        error = self.write_now()
        if error:
            self.fail(error)

    def moved(self) -> None:
        """The file is in another directory."""
        self._written = b""

    def visit(self) -> None:
        """Write what is not written, unless that failed a moment ago.

        A write that failed is repeated even if it changed nothing: it left its file beside the other one.
        """
        if self.is_idle and (self.error or self._wanted() != self._written):
            self._writing = self._wanted()
            self.plan()
            self.proceed()
