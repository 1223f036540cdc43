"""The kinds of records that rooms add to the append-only file.

A record is a request as on the client protocol; its first word names its kind. LOADJOB, DELJOB and FORMAT belong to the
persistence room. All other kinds belong to the rooms that declare them (`core.runtime.recordkind`). Their formats are
enough to read a file; only a node loads their records and writes those of a rewritten file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from mypy_extensions import i64

Words: TypeAlias = tuple[bytes, ...]
"""The words of a record, its name included."""

_OWN: Final = (b"LOADJOB", b"DELJOB", b"FORMAT")


class RecordFormat:
    """The format of one kind of record."""

    def __init__(self, name: bytes, words: i64, fault: Callable[[list[bytes]], str]) -> None:
        self.name = name
        self.words: i64 = words
        """The number of words, with the name."""
        self.fault = fault
        """Returns what is wrong with a record that has this number of words; empty if nothing is."""
        self.head = b"*%d\r\n$%d\r\n%b\r\n$" % (words, len(name), name)
        """The bytes that each record of this kind begins with."""


class RecordTable:
    """The formats by which a file is read."""

    def __init__(self) -> None:
        self.formats: list[RecordFormat] = []
        self._by_name: dict[bytes, RecordFormat] = {}

    def add(self, added: RecordFormat) -> None:
        """Add a kind.

        Raises:
            ValueError: the name is already used or not in capitals, or there is no word after it.
        """
        name = added.name
        if name in self._by_name or name in _OWN:
            raise ValueError(f"record {name.decode()}: the name is already used")
        if name != name.upper():
            raise ValueError(f"record {name.decode()}: the name must be in capitals")
        if added.words < 2:
            raise ValueError(f"record {name.decode()}: a record has at least 2 words, not {added.words}")
        self._by_name[name] = added
        self.formats.append(added)

    def get(self, name: bytes) -> RecordFormat | None:
        """The format of a kind; None if no room declares it."""
        return self._by_name.get(name)


class NodeRecords:
    """What one node does with the records of one kind."""

    def __init__(self, load: Callable[[list[bytes]], None], current: Callable[[], Iterator[list[Words]]]) -> None:
        self.load = load
        """Does what a record says; its words were checked."""
        self.current = current
        """Yields the records of everything that holds now, a bounded number at a time; see `RecordKind.current`."""
