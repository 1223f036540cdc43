"""Finds what is wrong in an append-only file, for `disque-check-aof`; it does not access the file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from mypy_extensions import i64

from disqued import __version__
from disqued.core.jobs.codec import CorruptJob
from disqued.core.jobs.job import ACTIVE, QUEUED
from disqued.core.lifecycle.records import content_of
from disqued.persistence.parse import DELJOB, FORMAT, LOADJOB, SKIPPED, SUM_RIGHT, TORN, Damage, Entry, job_of
from disqued.releases import FILE_FORMAT

Reader: TypeAlias = Callable[[int, int], bytes]
"""Returns this many bytes of the file from an offset on, fewer at its end."""

_OWN: Final = (LOADJOB, DELJOB, FORMAT)
_LINE_BYTES: Final = 127
"""The longest line that the original reads."""
LF: Final = b"\n"
CRLF: Final = b"\r\n"
_END_BYTES: Final = 2


def fault_of(item: Entry | Damage) -> Damage | None:
    """What is wrong with a part of the file; None if nothing is."""
    if isinstance(item, Damage):
        return item
    why = _fault_of_record(item)
    return Damage(item.offset, item.end, SKIPPED, why) if why else None


def _fault_of_record(entry: Entry) -> str:
    words = entry.words
    command = words[0]
    if command == LOADJOB:
        try:
            state = job_of(entry).state
        except CorruptJob as error:
            return str(error)
        return "" if ACTIVE <= state <= QUEUED else f"no job is kept in state {state}"
    if command == DELJOB:
        return ""
    if command == FORMAT:
        return "" if words[1].isdigit() else f"FORMAT with {words[1][:40]!r} instead of a number"
    known = entry.format
    if known is not None:
        return known.fault(words)
    shown = command[:40].decode("ascii", "backslashreplace")
    return f"{shown} is not a record of an append-only file"


def unknown_format(item: Entry | Damage) -> str:
    """Why this release must not touch the file that has this part; empty if it may.

    Records that it does not know would look like damage. A later release says which format a file has, and seals the
    records of its new kinds.
    """
    if not isinstance(item, Entry):
        return ""
    words = item.words
    if item.format is None and words[0] not in _OWN and len(words) == 2 and content_of(words[0], words[1]) is not None:
        name = words[0][:40].decode("ascii", "backslashreplace")
        return f"it has a record {name}, which this release ({__version__}) does not know"
    if words[0] != FORMAT or not words[1].isdigit():
        return ""
    number = int(item.words[1])
    if number <= FILE_FORMAT:
        return ""
    return f"it has format {number}, and this release ({__version__}) reads formats up to {FILE_FORMAT}"


class Check:
    """The findings in one file so far."""

    def __init__(self) -> None:
        self.records: i64 = 0
        """The number of sound records."""
        self.jobs: i64 = 0
        """The number of sound records that keep a job."""
        self.sums: i64 = 0
        """The number of jobs with a right checksum."""
        self.faults: list[Damage] = []
        self.refused = ""
        """Why this release must not touch the file; empty if it may."""
        self.end: i64 = 0
        """The position up to which the file was checked."""

    def take(self, item: Entry | Damage) -> None:
        """Check the next part of the file."""
        self.end = item.end
        self.refused = self.refused or unknown_format(item)
        fault = fault_of(item)
        if fault is not None:
            self.faults.append(fault)
            return
        assert isinstance(item, Entry)
        self.records += 1
        if item.words[0] == LOADJOB:
            self.jobs += 1
            if item.checksum == SUM_RIGHT:
                self.sums += 1

    @property
    def ok_up_to(self) -> int:
        """Where the first fault begins, or the file ends."""
        return int(self.faults[0].offset if self.faults else self.end)

    @property
    def is_torn_only(self) -> bool:
        """Whether the only fault is that the last record is cut off."""
        return len(self.faults) == 1 and self.faults[0].kind == TORN

    def sound_parts(self) -> list[tuple[int, int]]:
        """Begin and end of what a mended file consists of.

        All that is sound, if checksums tell it to be as it was written; otherwise what stands before the first fault.
        """
        if self.sums == 0:
            return [(0, self.ok_up_to)]
        parts: list[tuple[int, int]] = []
        begin: i64 = 0
        for fault in self.faults:
            if fault.offset > begin:
                parts.append((int(begin), int(fault.offset)))
            begin = fault.end
        if self.end > begin:
            parts.append((int(begin), int(self.end)))
        return parts


def framing_fault(read: Reader, offset: int, size: int) -> str:
    """What the original's tool would say of the record at `offset` of a file of that size, with the place.

    Empty if it found no fault: it sees only whether lengths and ends of lines fit. In its text for a wrong prefix the
    two characters are swapped.
    """
    here = offset
    prefix = b"*"
    missing = 1
    while missing > 0 and here < size:
        line = read(here, _LINE_BYTES).partition(b"\n")[0]
        if line[:1] != prefix:
            return _text(here, f"Expected prefix '{_character(prefix)}', got: '{_character(line[:1] or LF)}'")
        digits = _digits(line)
        behind = read(here + 1 + len(digits), _END_BYTES)
        if behind != CRLF:
            return _text(here, f"Expected \\r\\n, got: {behind.ljust(_END_BYTES, bytes(1)).hex()}")
        here += 1 + len(digits) + _END_BYTES
        number = int(digits or b"0")
        if prefix == b"*":
            missing = number
            prefix = b"$"
            continue
        wanted = number + _END_BYTES
        if here + wanted > size:
            return _text(here, f"Expected to read {wanted} bytes, got {size - here} bytes")
        behind = read(here + number, _END_BYTES)
        if behind != CRLF:
            return _text(here, f"Expected \\r\\n, got: {behind.hex()}")
        here += wanted
        missing -= 1
    return ""


def _digits(line: bytes) -> bytes:
    """The digits behind the prefix of a line."""
    end = 1
    while end < len(line) and line[end : end + 1].isdigit():
        end += 1
    return line[1:end]


def _text(offset: int, text: str) -> str:
    return f"0x{offset:16x}: {text}"


def _character(character: bytes) -> str:
    return character.decode("ascii") if 32 < character[0] < 127 else f"\\x{character[0]:02x}"
