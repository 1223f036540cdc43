"""The jobs that a task added, packed small enough to send to the driver: 27 bytes per job ID, up to a limit."""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Iterator, Sequence
from typing import Final

ID_BYTES: Final = 27
_ID_CHARACTERS: Final = 36
_REPLY_BYTES: Final = 40


def encode_ids(ids: Sequence[bytes]) -> bytes:
    """Pack job IDs: without `D-` and the dashes, an ID is 36 characters of the base64 alphabet.

    Raises:
        ValueError: a value is not a job ID.
    """
    digits = b"".join(job_id[1:] for job_id in ids).replace(b"-", b"")
    if len(digits) != len(ids) * _ID_CHARACTERS:
        wrong = next(job_id for job_id in ids if len(job_id) != _REPLY_BYTES)
        raise ValueError(f"{wrong!r} is not a job ID")
    return a2b_base64(digits)


def decode_ids(packed: bytes, at_once: int) -> Iterator[list[str]]:
    """Unpack job IDs, in lists of up to `at_once`."""
    for start in range(0, len(packed), at_once * ID_BYTES):
        digits = b2a_base64(packed[start : start + at_once * ID_BYTES], newline=False).decode()
        pieces = (digits[first : first + _ID_CHARACTERS] for first in range(0, len(digits), _ID_CHARACTERS))
        yield [f"D-{piece[:8]}-{piece[8:32]}-{piece[32:]}" for piece in pieces]


class AddedJobs:
    """The number of rows that were added, and the job IDs of the first `limit` of them."""

    def __init__(self, limit: int) -> None:
        self.rows = 0
        self._limit_bytes = limit * ID_BYTES
        self._packed = bytearray()

    def add(self, ids: Sequence[bytes]) -> None:
        """Record added jobs."""
        self.rows += len(ids)
        if len(self._packed) < self._limit_bytes:
            self._packed += encode_ids(ids)
            del self._packed[self._limit_bytes :]

    def packed(self, limit: int | None = None) -> bytes:
        """Return the packed IDs: all, or the first `limit`."""
        return bytes(self._packed if limit is None else self._packed[: limit * ID_BYTES])
