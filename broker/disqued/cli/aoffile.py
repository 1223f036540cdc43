"""Reads append-only files of any size, chunk by chunk, and shows the progress."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from disqued.cli.arguments import UsageError
from disqued.node import ROOMS
from disqued.persistence.parse import Damage, Entry
from disqued.persistence.reader import EntryReader

CHUNK_BYTES = 1 << 20
SHOW_AFTER_S = 1.0
"""Progress is shown if the work takes longer than this."""
UPDATE_S = 0.2
"""The interval between updates of the progress."""


@contextmanager
def opened(path: str) -> Iterator[tuple[BinaryIO, int]]:
    """Open the file and return it with its size; `-` is standard input, whose size is 0. Raises UsageError."""
    if path == "-":
        yield sys.stdin.buffer, 0
        return
    try:
        file = open(path, "rb")  # noqa: SIM115, PTH123  closed below; only the open may fail with this error
    except OSError as error:
        raise UsageError(f"Cannot open file: {path} ({error.strerror})") from error
    with file:
        yield file, os.fstat(file.fileno()).st_size


def walk(file: BinaryIO, size: int) -> Iterator[Entry | Damage]:
    """Yield all entries of the file; `size` is its length in bytes, 0 if unknown."""
    reader = EntryReader(ROOMS.record_table)
    progress = Progress(size)
    try:
        while chunk := file.read(CHUNK_BYTES):
            reader.feed(chunk)
            while (item := reader.next()) is not None:
                yield item
            progress.update(reader.offset)
        reader.end()
        while (item := reader.next()) is not None:
            yield item
    finally:
        progress.clear()


class Progress:
    """Shows progress on standard error if that is a terminal."""

    def __init__(self, total: int, show_after_s: float = SHOW_AFTER_S) -> None:
        self._total = total
        self._next_s = time.monotonic() + show_after_s if total > 0 and sys.stderr.isatty() else None
        self._shown = False

    def update(self, done: int) -> None:
        """Show that `done` bytes are done."""
        if self._next_s is not None and time.monotonic() >= self._next_s:
            sys.stderr.write(f"\r{100 * done // self._total} % of {self._total >> 20} MB")
            sys.stderr.flush()
            self._next_s = time.monotonic() + UPDATE_S
            self._shown = True

    def clear(self) -> None:
        """Clear the progress line."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            self._shown = False
