"""The machine of group 0: applies changes to its own catalog.

The catalog that the node uses may be newer for a while: after a restart it is the copy on the disk, and the machine
begins with its snapshot (`hosting`).
"""

from __future__ import annotations

from collections.abc import Callable

from disqued.errors import ReplyError
from disqued.ordered.applier import Applier
from disqued.ordered.catalog import Catalog, decode
from disqued.ordered.storage import Storage
from disqued.raft.entry import NORMAL, Entry


class CatalogMachine(Applier):
    """Applies the entries of group 0."""

    def __init__(self, storage: Storage, identity: bytes, changed: Callable[[], None]) -> None:
        self.eager = True  # all nodes of a new queue begin their replicas at the same time
        self._storage = storage
        self.catalog = Catalog(identity)
        self._changed = changed
        """Called when the catalog has changed."""

    def apply(self, entry: Entry, *, leads: bool, wanted: bool) -> bytes:  # noqa: ARG002 - the same everywhere
        """Change the catalog."""
        self._storage.log.release(0, entry.index)
        version = self.catalog.version
        result = self.catalog.apply(entry.index, entry.data) if entry.kind == NORMAL else b""
        if self.catalog.version != version:
            self._changed()
        return result

    def read(self, question: bytes, entries: dict[int, Entry]) -> tuple[bytes, list[int]]:  # noqa: ARG002 - a base
        """There are no questions."""
        raise ReplyError("ERR the catalog is read from every node")

    def snapshot(self) -> bytes:
        """The catalog."""
        return self.catalog.encode()

    def restore(self, state: bytes) -> None:
        """Take another catalog."""
        self.catalog.take(decode(state))
        self._changed()
