"""Reads the records of a segment chunk by chunk, and finds the next sound record behind damage.

Behind an unsound record the scanner looks for the next sound one at each offset that is a multiple of 8. A stretch of
damage is *blank* if it looks like pages that never reached the disk: zeros at a page boundary or at its beginning. A
flipped bit does not look like that.

A file may be longer than what was written to it (`DiskWork.ahead`), so zeros at its end do not count: for the scanner
it ends where they begin.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.raftlog.record import MAGIC, SHORT, SOUND, RecordReader

PAGE_BYTES: Final = 64
"""Divides the page size of every file system."""
_ZEROS: Final = bytes(12)
"""More than the fields of a record have at a page boundary."""
_FEW_ZEROS: Final = bytes(8)
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
        self._blank: i64 = _NONE
        """Where its first blank page begins."""
        self._zeros: i64 = _NONE
        """From where on there are only zeros in it; a multiple of 8."""

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
                    self._handler.unsound(self._bad, base + at, blank=self._blank != _NONE)
                    self._bad = _NONE
                self._handler.record(reader, base + at)
                at += reader.size
            elif status == SHORT and not last and base + at + reader.size <= file_bytes:
                self.want = max(self._read_bytes, reader.size)
                break
            else:
                if self._bad == _NONE:
                    self._bad = self._zeros = base + at
                    self._blank = base + at if data[at : at + len(_FEW_ZEROS)] == _FEW_ZEROS else _NONE
                at += 8
        if self._bad != _NONE:
            self._look_for_last_zeros(data)
        if last:
            self._end(base + size)
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
        page = (self.at + start + PAGE_BYTES - 1) // PAGE_BYTES * PAGE_BYTES - self.at
        while self._blank == _NONE and page + len(_ZEROS) <= end:
            if data[page : page + len(_ZEROS)] == _ZEROS:
                self._blank = self.at + page
            page += PAGE_BYTES

    def _look_for_last_zeros(self, data: bytes) -> None:
        last: i64 = len(data.rstrip(b"\0"))
        if last > 0 and self.at + last > self._zeros:
            self._zeros = (self.at + last + 7) & ~7

    def _end(self, end: i64) -> None:
        """The file ends."""
        self.ended = True
        end = min(end, self._zeros)
        if self._bad != _NONE and self._bad < end:
            self._handler.unsound(self._bad, end, blank=self._blank != _NONE and self._blank < end)
