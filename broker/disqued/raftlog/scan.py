"""Reads the records of a segment chunk by chunk, and finds the next sound record behind damage.

Behind an unsound record the scanner looks for the next sound one at each offset that is a multiple of 8. A stretch of
damage is *blank* if it looks like pages that never reached the disk: zeros at a page boundary, at its beginning, or up
to the end of the file. A flipped bit does not look like that.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.raftlog.record import MAGIC, SHORT, SOUND, RecordReader

_PAGE_BYTES: Final = 64
"""Divides the page size of every file system."""
_ZEROS: Final = bytes(12)
"""More than the fields of a record have at a page boundary."""
_FEW_ZEROS: Final = bytes(8)
_LAST_ZEROS: Final = bytes(16)
_NONE: Final = -1


@mypyc_attr(allow_interpreted_subclasses=True)
class ScanHandler:
    """Is told what a scanner finds."""

    def record(self, reader: RecordReader, offset: i64) -> None:
        """A sound record at this offset of the segment."""
        raise NotImplementedError

    def unsound(self, start: i64, end: i64, *, blank: bool) -> None:
        """No sound record is in this range, which ends at a sound record or at the end of the file."""
        raise NotImplementedError


class Scanner:
    """Reads one segment: the driver reads `want` bytes at `at` and feeds them, until `ended`."""

    def __init__(self, seed: i64, start: i64, read_bytes: i64, handler: ScanHandler) -> None:
        self.at: i64 = start
        self.want: i64 = read_bytes
        self.ended: bool = False
        self._seed: i64 = seed
        self._read_bytes: i64 = read_bytes
        self._handler = handler
        self._reader = RecordReader()
        self._bad: i64 = _NONE
        """Where the damage begins; _NONE if the scanner is at a record."""
        self._blank: bool = False

    def feed(self, data: bytes, file_bytes: i64) -> None:
        """Take the bytes that were read at `at`; the file has this size."""
        reader = self._reader
        reader.load(data, self._seed)
        base = self.at
        size: i64 = len(data)
        last = base + size >= file_bytes or size == 0
        at: i64 = 0
        self.want = self._read_bytes
        while at < size:
            if self._bad != _NONE:
                at = self._look(data, at, last=last)
                if at >= size & ~7:
                    break
            status = reader.parse(at)
            if status == SOUND:
                if self._bad != _NONE:
                    self._handler.unsound(self._bad, base + at, blank=self._blank)
                    self._bad = _NONE
                self._handler.record(reader, base + at)
                at += reader.size
            elif status == SHORT and not last and base + at + reader.size <= file_bytes:
                self.want = max(self._read_bytes, reader.size)
                break
            else:
                if self._bad == _NONE:
                    self._bad = base + at
                    self._blank = data[at : at + len(_FEW_ZEROS)] == _FEW_ZEROS
                at += 8
        if last:
            self._end(data, base + size)
        self.at = base + min(at, size)

    def _look(self, data: bytes, at: i64, *, last: bool) -> i64:
        """The offset of the next record that may be sound, or behind all that was looked at."""
        size: i64 = len(data)
        found: i64 = data.find(MAGIC, at)
        while found >= 0 and found & 7:
            found = data.find(MAGIC, found + 1)
        end = found if found >= 0 else size
        self._look_for_blank_pages(data, max(at - 8, 0), end)
        if found >= 0:
            return found
        return size if last else size & ~7

    def _look_for_blank_pages(self, data: bytes, start: i64, end: i64) -> None:
        page = (self.at + start + _PAGE_BYTES - 1) // _PAGE_BYTES * _PAGE_BYTES - self.at
        while not self._blank and page + len(_ZEROS) <= end:
            self._blank = data[page : page + len(_ZEROS)] == _ZEROS
            page += _PAGE_BYTES

    def _end(self, data: bytes, end: i64) -> None:
        """The file ends."""
        self.ended = True
        if self._bad != _NONE:
            blank = self._blank or data.endswith(_LAST_ZEROS)
            self._handler.unsound(self._bad, end, blank=blank)
