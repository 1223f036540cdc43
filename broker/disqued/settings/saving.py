"""Keeps the settings on disk: the file is replaced as a whole.

Changes that are made while a file is being written are in the next one, so many changes cost few files. The clients
that wait for a write that fails get an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disqued.core.runtime.wholefile import WholeFile
from disqued.settings.file import decode, encode

if TYPE_CHECKING:
    from disqued.core.runtime.state import NodeState
    from disqued.settings.entries import Entries, Entry

_MOST_BYTES: Final = 256 << 20
"""A limit above the size of any file."""


class SettingsFile(WholeFile):
    """The file of one node."""

    def __init__(self, state: NodeState, entries: Entries) -> None:
        super().__init__(state, "Settings of queues")
        self._entries = entries
        self._writing = 0
        """How many changes the next text has."""
        self.changes = 0
        """The number of changes so far."""
        self.saved = 0
        """How many of them are in the file."""

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.state.config.cluster_settings_file

    def load(self) -> list[Entry]:
        """The entries in the file. Raises ValueError, with what to do, if it cannot be read or is damaged."""
        work = self.read(_MOST_BYTES)
        if work.missing:
            return []
        if work.error:
            raise ValueError(f"Can't read the settings of queues in {self.name}: {work.error}.")
        try:
            return decode(b"".join(work.data))
        except ValueError as error:
            raise ValueError(
                f"Unrecoverable error: corrupted settings file {self.name}, {error}. Repair it, or remove it: a node "
                "without the file takes the settings from the other nodes, a single node then has none."
            ) from error

    def changed(self) -> None:
        """Have the present entries written soon."""
        self.changes += 1

    def visit(self) -> None:
        """Write what is not written, unless that failed a moment ago."""
        if self.is_idle:
            self.save()

    def save(self) -> None:
        """Begin to write the present entries, unless they are in the file, or a write is under way."""
        if self.saved != self.changes and not self.is_writing:
            self.plan()
            self.proceed()

    def save_now(self) -> str:
        """Write what is not written, and wait for it: the node ends. Returns the error, empty on success."""
        return "" if self.saved == self.changes else self.write_now()

    def text(self) -> bytes:
        """All entries."""
        self._writing = self.changes
        return encode(self._entries.all())

    def replaced(self) -> None:
        """Write again if there are newer changes."""
        self.saved = self._writing
        if self.saved != self.changes:
            self.plan()
