"""Keeps the settings on disk: the file is replaced as a whole, by disk work that the node does not wait for.

Changes that are made while a file is being written are in the next one, so many changes cost few files. A write that
fails is repeated every second, and the clients that wait for it get an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.host import disk
from disqued.core.host.disk import VERB_NAMES, DiskOwner, DiskWork
from disqued.settings.file import decode, encode

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState
    from disqued.settings.entries import Entries, Entry

_RETRY_MS: Final = 1000
_MOST_BYTES: Final = 256 << 20
"""A limit above the size of any file."""


class SettingsFile(DiskOwner):
    """The file of one node."""

    def __init__(self, state: NodeState, entries: Entries) -> None:
        super().__init__()
        self._state = state
        self._entries = entries
        self._name = state.config.cluster_settings_file
        self._beside = f"temp-{self._name}"
        self._steps: list[DiskWork] = []
        """The disk work that remains of a write."""
        self._writing = 0
        self._retry_ms = 0
        self.changes = 0
        """The number of changes so far."""
        self.saved = 0
        """How many of them are in the file."""
        self.failures = 0
        self.error = ""
        """Why the last write failed; empty if it did not."""

    def load(self) -> list[Entry]:
        """The entries in the file. Raises ValueError, with what to do, if it cannot be read or is damaged."""
        work = DiskWork(disk.READ, self._name)
        work.size = _MOST_BYTES
        self._state.host.disk.perform(work)
        if work.missing:
            return []
        if work.error:
            raise ValueError(f"Can't read the settings of queues in {self._name}: {work.error}.")
        try:
            return decode(b"".join(work.data))
        except ValueError as error:
            raise ValueError(
                f"Unrecoverable error: corrupted settings file {self._name}, {error}. Repair it, or remove it: a node "
                "without the file takes the settings from the other nodes, a single node then has none."
            ) from error

    def changed(self) -> None:
        """Have the present entries written soon."""
        self.changes += 1

    def visit(self) -> None:
        """Write what is not written, unless that failed a moment ago."""
        if self.saved != self.changes and self._state.now_ms >= self._retry_ms:
            self.save()

    def save(self) -> None:
        """Begin to write the present entries, unless a write is under way."""
        if not self._writing and self._begin():
            self._next()

    def _begin(self) -> bool:
        """Plan to write the present entries; False if they are in the file. The caller starts the first step."""
        if self.saved == self.changes:
            return False
        self._writing = self.changes
        self._steps = self._work()
        return True

    def save_now(self) -> str:
        """Write what is not written, and wait for it: the node ends. Returns the error, empty on success."""
        if self.saved == self.changes:
            return ""
        for work in self._work():
            self._state.host.disk.perform(work)
            if work.error:
                return _described(work)
        self.saved = self.changes
        return ""

    def _work(self) -> list[DiskWork]:
        """The disk work that replaces the file, in order."""
        write = DiskWork(disk.APPEND, self._beside, self)
        write.data = [encode(self._entries.all())]
        replace = DiskWork(disk.REPLACE, self._beside, self)
        replace.other = self._name
        return [DiskWork(disk.REMOVE, self._beside, self), DiskWork(disk.OPEN, self._beside, self), write, replace]

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
            self._fail(_described(work))
            return False
        if work.verb == disk.OPEN and work.size > 0:  # left over, although it was removed: nothing may be appended
            self._steps = self._work()
            return True
        del self._steps[0]
        if not self._steps:
            self.saved, self._writing = self._writing, 0
            self.error = ""
            self._begin()
        return True

    def _fail(self, error: str) -> None:
        if not self.error:
            self._state.host.log("warning", f"Settings of queues not saved, trying again every second: {error}")
        self.error = error
        self.failures += 1
        self._steps = []
        self._writing = 0
        self._retry_ms = int(self._state.now_ms) + _RETRY_MS


def _described(work: DiskWork) -> str:
    return f"can't {VERB_NAMES[work.verb]} {work.name}: {work.error}"
