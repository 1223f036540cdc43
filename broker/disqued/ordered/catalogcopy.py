"""The copy of the catalog on the disk of each node.

It lets a node know the names of the ordered queues as soon as it starts again, although it has no replica of group 0,
or although group 0 has no leader yet. Without it, the node would take an ordered queue for a queue of jobs.

The copy is a snapshot in the log, under a number that no group has. A small catalog is copied in the turn in which it
changes, before the replicas of a new queue begin: so the copy is synced before the queue has a leader, and before QNEW
is answered. A large one is copied every 100 ms if it has changed.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.host.host import Host
from disqued.ordered.catalog import Catalog
from disqued.raft.hardstate import HardState
from disqued.raft.members import Members
from disqued.raftlog.log import RaftLog

COPY_GROUP: Final = (1 << 32) - 1
SMALL_QUEUES: Final = 256
"""A catalog with up to so many queues is copied at once."""


class CatalogCopy:
    """What the log of one node keeps of the catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._version: i64 = 0
        """The version in the log."""
        self._damaged = False

    def begin(self, log: RaftLog) -> None:
        """Write something, so that the files of the log are there."""
        log.save_hard(COPY_GROUP, HardState(0, b""))

    def found(self, version: i64) -> None:
        """The log has a copy of this version."""
        self._version = version

    def damaged(self, host: Host, why: str) -> None:
        """The copy cannot be read: another one must be written."""
        host.log("warning", f"The copy of the catalog is damaged, another one will be written: error={why}")
        self._version = 0
        self._damaged = True

    def is_due(self, *, changes: bool) -> bool:
        """Whether the catalog must be copied: now that it `changes`, or regularly."""
        small = len(self._catalog.by_group) <= SMALL_QUEUES
        return self._catalog.version > self._version and (small or not changes)

    def write(self, log: RaftLog, founders: Members) -> None:
        """Write the catalog, and the members of group 0."""
        if self._damaged:
            self._damaged = False
            log.remove_group(COPY_GROUP)
        self._version = self._catalog.version
        log.install_snapshot(COPY_GROUP, self._version, 1, founders.encode(), self._catalog.encode())

    def remove(self, log: RaftLog) -> None:
        """The node leaves the cluster at once."""
        log.remove_group(COPY_GROUP)

    def forget(self) -> None:
        """There is no catalog any more."""
        self._version = 0
