"""Tuning of glibc malloc: how much free memory it keeps, and how much it returns to the system.

Objects up to 512 bytes come from Python's arenas of one megabyte, which are returned when they are empty. Larger
objects, mainly job bodies, come from the C library. glibc returns only the end of its heap by itself; `release` also
returns free pages in the middle. Without `configure`, freeing one large body would raise the threshold for mapping
objects one by one, which are returned at once, to 32 MB. Other C libraries are not changed.
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
"""Larger objects are mapped one by one. Reads of the event loop are smaller."""
_FREE_END_BYTES: Final = 8 << 20
"""How much may stay free at the end of the heap."""

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_LIBRARY: Final = ctypes.CDLL(None)


def configure() -> None:
    """Set the parameters of malloc. Call it before the server allocates memory."""
    if hasattr(_LIBRARY, "mallopt"):
        _LIBRARY.mallopt(_MMAP_THRESHOLD, MAPPED_BYTES)
        _LIBRARY.mallopt(_TRIM_THRESHOLD, _FREE_END_BYTES)
        _LIBRARY.mallopt(_ARENA_MAX, 1)  # otherwise each thread keeps its own free memory


def release() -> None:
    """Return all free pages to the system; takes about 0.2 ms per megabyte."""
    if hasattr(_LIBRARY, "malloc_trim"):
        _LIBRARY.malloc_trim(0)


def resident_bytes() -> int:
    """Memory of this process that is in RAM."""
    descriptor = os.open("/proc/self/statm", os.O_RDONLY)
    try:
        return int(os.read(descriptor, 200).split()[1]) * _PAGE_BYTES
    finally:
        os.close(descriptor)
