"""Joins REPLJOBs that follow each other on a link: one header for many jobs.

Most REPLJOBs of one turn of the event loop differ only in the job. The bytes of the jobs wait one by one, and the
header of the first frame is changed when the output of the link is written. A REPLJOB that is alone stays as it is.
"""

from __future__ import annotations

from mypy_extensions import i64

from disqued.bus.bigendian import u32
from disqued.bus.frame import COUNTED_BYTES, HEADER_BYTES, LENGTH_KNOWN_BYTES, MESSAGE_FLAGS_AT, SIGNATURE
from disqued.core.memory.accounting import BIG_BYTES


class Copies:
    """The last REPLJOB in the output of a link."""

    def __init__(self) -> None:
        self._at: i64 = 0
        """The index of the frame in the output."""
        self._jobs: i64 = 0
        """How many jobs it has; 0 if there is no such frame."""
        self._bytes: i64 = 0
        """How long it is."""
        self._flags: i64 = 0

    def join(self, out: list[bytes], frame: bytes) -> i64:
        """Add the job of a REPLJOB to the last frame of the output.

        Returns by how many bytes the output grew; 0 if the frame must be added as it is, because the last frame is no
        REPLJOB, has other flags, or would be so long that a node with little memory skips it.
        """
        size: i64 = len(frame)
        flags: i64 = frame[MESSAGE_FLAGS_AT]
        more: i64 = size - COUNTED_BYTES
        if (
            self._jobs > 0
            and self._at + self._jobs == len(out)
            and flags == self._flags
            and self._bytes + more <= BIG_BYTES
        ):
            out.append(frame[COUNTED_BYTES:])
            self._jobs += 1
            self._bytes += more
            return more
        self.finish(out)
        self._at = len(out)
        self._jobs = 1
        self._bytes = size
        self._flags = flags
        return 0

    def finish(self, out: list[bytes]) -> None:
        """Complete the header of the frame. No job is added to it any more."""
        if self._jobs > 1:
            first = out[self._at]
            head = SIGNATURE + u32(self._bytes) + first[LENGTH_KNOWN_BYTES:HEADER_BYTES]
            out[self._at] = head + u32(self._jobs) + u32(self._bytes - COUNTED_BYTES) + first[COUNTED_BYTES:]
        self._jobs = 0
