"""`disque-server --test-memory MEGABYTES`: does this machine's memory keep what is written to it?

A quick look for broken memory behind a crash that nobody can explain. It tests the part of memory the system hands out,
once; a thorough test needs the machine for itself.
"""

from __future__ import annotations

import sys

_PATTERNS = (0x00, 0xFF, 0x55, 0xAA)


def memory_test(megabytes: int | None) -> int:
    """Write patterns to that much memory and read them back; returns the exit status."""
    if megabytes is None:
        return _failure("Please say how much memory to test, in megabytes: --test-memory 1024")
    for pattern in _PATTERNS:
        try:
            block = bytes((pattern,)) * (megabytes << 20)
        except (MemoryError, OverflowError):
            return _failure(f"There are no {megabytes} MB of free memory to test, try with less.")
        if block.count(pattern) != len(block):
            return _failure(
                f"Memory does not keep the pattern {pattern:#04x}: replace it before you trust this machine."
            )
    print(f"{megabytes} MB of memory kept every pattern.")  # noqa: T201 - the result of the test
    return 0


def _failure(text: str) -> int:
    sys.stderr.write(f"{text}\n")
    return 1
