"""The kinds of records that rooms add to the append-only file.

A record is a request as on the client protocol; its first word names its kind. LOADJOB, DELJOB and FORMAT belong to the
persistence room. All other kinds belong to the rooms that declare them (`core.runtime.recordkind`). Their formats are
enough to read a file; only a node loads their records and writes those of a rewritten file.

A kind that neither the original nor release 0.1 knows has one word behind its name, which is *sealed*: the length of
its content (4 bytes, little endian), the content, the mark `CRC#`, and the CRC-32 of the name and everything before the
mark. A node that finds a sealed record of an unknown kind knows that a later release wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from typing import TYPE_CHECKING, Final, TypeAlias
from zlib import crc32

from mypy_extensions import i64

from disqued.releases import EXTENDED_FORMAT, FIRST_FORMAT

if TYPE_CHECKING:
    from disqued.core.jobs.job import Job

Words: TypeAlias = tuple[bytes, ...]
"""The words of a record, its name included. The content of a record that is sealed in the file is a word."""

_OWN: Final = (b"LOADJOB", b"DELJOB", b"FORMAT")

SUM_MARK: Final = b"CRC#"
SUM_BYTES: Final = 8
"""The size of a checksum with its mark."""
_U32: Final = Struct("<I")
_LENGTH_BYTES: Final = 4


def sealed(name: bytes, content: bytes) -> bytes:
    """The word of a sealed record of this kind."""
    payload = _U32.pack(len(content)) + content
    return payload + SUM_MARK + _U32.pack(crc32(payload, crc32(name)))


def content_of(name: bytes, word: bytes) -> bytes | None:
    """The content of a sealed word; None if it is none, or if its checksum is wrong."""
    end = len(word) - SUM_BYTES
    if end < _LENGTH_BYTES or word[end : end + len(SUM_MARK)] != SUM_MARK:
        return None
    if word[:_LENGTH_BYTES] != _U32.pack(end - _LENGTH_BYTES):
        return None
    if word[-_LENGTH_BYTES:] != _U32.pack(crc32(word[:end], crc32(name))):
        return None
    return word[_LENGTH_BYTES:end]


class RecordFormat:
    """The format of one kind of record."""

    def __init__(
        self, name: bytes, words: i64, fault: Callable[[list[bytes]], str], *, is_sealed: bool = False
    ) -> None:
        self.name = name
        self.words: i64 = words
        """The number of words, with the name."""
        self._fault = fault
        """Returns what is wrong with a record that has this number of words; empty if nothing is. For a sealed record
        the last word is its content."""
        self.is_sealed = is_sealed
        self.file_format: i64 = EXTENDED_FORMAT if is_sealed else FIRST_FORMAT
        """The format of files with such records."""
        self.head = b"*%d\r\n$%d\r\n%b\r\n$" % (words, len(name), name)
        """The bytes that each record of this kind begins with."""

    def opened(self, words: list[bytes]) -> list[bytes] | None:
        """The words of a record, with the content in place of a sealed word; None if the seal is wrong."""
        if not self.is_sealed:
            return words
        content = content_of(words[0], words[1])
        return None if content is None else [words[0], content]

    def fault(self, words: list[bytes]) -> str:
        """What is wrong with a record as it is in the file; empty if nothing is."""
        plain = self.opened(words)
        return "the checksum is wrong" if plain is None else self._fault(plain)

    def closed(self, words: Words) -> Words:
        """The words of a record as they are in the file."""
        return (words[0], sealed(words[0], words[1])) if self.is_sealed else words


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
        if added.words < 2 or (added.is_sealed and added.words != 2):
            raise ValueError(f"record {name.decode()}: a sealed one has 2 words, others have 2 or more")
        self._by_name[name] = added
        self.formats.append(added)

    def get(self, name: bytes) -> RecordFormat | None:
        """The format of a kind; None if no room declares it."""
        return self._by_name.get(name)


class NodeRecords:
    """What one node does with the records of one kind."""

    def __init__(
        self,
        load: Callable[[list[bytes]], None],
        current: Callable[[], Iterator[list[Words]]],
        of_job: Callable[[Job], Words | None] | None = None,
    ) -> None:
        self.load = load
        """Does what a record says; its words were checked."""
        self.current = current
        """Yields the records of everything that holds now, a bounded number at a time; see `RecordKind.current`."""
        self.of_job = of_job
        """Returns the record about a job; see `RecordKind.of_job`."""
