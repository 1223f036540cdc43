"""Walks over an append only file, chunk by chunk, so that its size does not matter; shows how far it is."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from disqued.cli.arguments import UsageError
from disqued.persistence.reader import Damage, Entry, EntryReader

CHUNK_BYTES = 1 << 20
PATIENCE_S = 1.0
"""Whoever waits longer is told how far it is,"""
TELL_S = 0.2
"""so often."""


@contextmanager
def opened(path: str) -> Iterator[tuple[BinaryIO, int]]:
    """The file and its size; `-` is the standard input, of unknown size. Raises UsageError if it can not be read."""
    if path == "-":
        yield sys.stdin.buffer, 0
        return
    try:
        file = open(path, "rb")  # noqa: SIM115, PTH123  closed below; the error belongs to opening only
    except OSError as error:
        raise UsageError(f"Cannot open file: {path} ({error.strerror})") from error
    with file:
        yield file, os.fstat(file.fileno()).st_size


def walk(file: BinaryIO, size: int) -> Iterator[Entry | Damage]:
    """All that stands in the file, which has that many bytes, or 0 if that is not known."""
    reader = EntryReader()
    progress = Progress(size)
    try:
        while chunk := file.read(CHUNK_BYTES):
            reader.feed(chunk)
            while (item := reader.next()) is not None:
                yield item
            progress.tell(reader.offset)
        reader.end()
        while (item := reader.next()) is not None:
            yield item
    finally:
        progress.clear()


class Progress:
    """How far it is, on the terminal of somebody who waits. Output that is no terminal is left alone."""

    def __init__(self, total: int, patience_s: float = PATIENCE_S) -> None:
        self._total = total
        self._next_s = time.monotonic() + patience_s if total > 0 and sys.stderr.isatty() else None
        self._shown = False

    def tell(self, done: int) -> None:
        """So many bytes are done."""
        if self._next_s is not None and time.monotonic() >= self._next_s:
            sys.stderr.write(f"\r{100 * done // self._total} % of {self._total >> 20} MB")
            sys.stderr.flush()
            self._next_s = time.monotonic() + TELL_S
            self._shown = True

    def clear(self) -> None:
        """Leave the line as it was."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            self._shown = False
