"""`disque-server --test-memory MEGABYTES`: a quick test for defective memory.

Use it after an unexplained crash. It tests the memory that the system allocates, once; a thorough test needs exclusive
use of the machine.
"""

from __future__ import annotations

import sys

_PATTERNS = (0x00, 0xFF, 0x55, 0xAA)


def memory_test(megabytes: int | None) -> int:
    """Write patterns to memory and read them back; returns the exit status."""
    if megabytes is None:
        return _failure("--test-memory needs the number of megabytes to test, such as --test-memory 1024")
    for pattern in _PATTERNS:
        try:
            block = bytes((pattern,)) * (megabytes << 20)
        except (MemoryError, OverflowError):
            return _failure(f"There are not {megabytes} MB of free memory to test; try less.")
        if block.count(pattern) != len(block):
            return _failure(f"Memory does not keep the pattern {pattern:#04x}: it is defective and must be replaced.")
    print(f"{megabytes} MB of memory passed the test.")  # noqa: T201 - the result of the test
    return 0


def _failure(text: str) -> int:
    sys.stderr.write(f"{text}\n")
    return 1
