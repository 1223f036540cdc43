"""What the C library does with memory: what it keeps for later, and what it gives back to the system.

Objects up to 512 bytes come from Python's own arenas of a megabyte, which are given back when they are empty. Larger
ones, above all bodies of jobs, come from the C library. glibc gives back the end of its heap only; in the middle whole
pages can be free, and `release` gives back those. Without `tame` its bound for memory that is mapped piece by piece,
and goes back piece by piece, would rise to 32 MB as soon as a large body was freed. Other C libraries are left alone.
"""

from __future__ import annotations

import ctypes
import os
from typing import Final

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
"""Parameters of mallopt(3)."""

MAPPED_BYTES: Final = 1 << 20
"""Larger pieces are mapped one by one. What the event loop reads at once stays below."""
_FREE_END_BYTES: Final = 8 << 20
"""So much may stay free at the end of the heap."""

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_LIBRARY: Final = ctypes.CDLL(None)


def tame() -> None:
    """Set what is kept and what goes back; to be called before the server takes memory."""
    if hasattr(_LIBRARY, "mallopt"):
        _LIBRARY.mallopt(_MMAP_THRESHOLD, MAPPED_BYTES)
        _LIBRARY.mallopt(_TRIM_THRESHOLD, _FREE_END_BYTES)
        _LIBRARY.mallopt(_ARENA_MAX, 1)  # threads would each keep what they freed


def release() -> None:
    """Give back all free pages; takes about 0.2 ms for each megabyte that goes."""
    if hasattr(_LIBRARY, "malloc_trim"):
        _LIBRARY.malloc_trim(0)


def resident_bytes() -> int:
    """Memory of this process that is in RAM."""
    descriptor = os.open("/proc/self/statm", os.O_RDONLY)
    try:
        return int(os.read(descriptor, 200).split()[1]) * _PAGE_BYTES
    finally:
        os.close(descriptor)
