"""DIGEST and CELL: two nodes compare the unfinished jobs that both should have.

Each job is in one of 4,096 cells, by a 64-bit hash of its ID, and a digest is the XOR of the hashes in each cell.
DIGEST has the cells of the sender, and CELL the IDs of the jobs in one of them. `comparing` says when they are sent.
Jobs that are younger than a time which the first node chooses are left out: their copies may still be on the way.
"""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct
from typing import Final

from mypy_extensions import i64

from disqued.core.jobs.job import Job
from disqued.core.jobs.jobid import JOB_ID_BYTES, is_job_id

CELLS: Final = 4096
MOST_IDS: Final = 4000
"""How many IDs a CELL has at most. A cell with more jobs is not compared."""
_HASH_BYTES: Final = 8
_DIGEST: Final = Struct(f">Q{CELLS}Q")
_CELL: Final = Struct(">QHB")


class Cell:
    """What a CELL says."""

    def __init__(self, before_ms: i64, number: i64, ids: list[bytes], *, is_answer: bool) -> None:
        self.before_ms: i64 = before_ms
        """Only jobs that were created before this time are compared, in unix milliseconds."""
        self.number: i64 = number
        self.ids = ids
        """The IDs of the jobs of the sender."""
        self.is_answer = is_answer
        """Whether the sender has compared them with those of the receiver already."""


def hash_of(job: Job) -> int:
    """The hash of a job, of 64 bits; the last ones are the number of its cell."""
    return int.from_bytes(blake2b(job.id, digest_size=_HASH_BYTES).digest(), "big")


def packed_digest(before_ms: i64, cells: list[int]) -> bytes:
    """The payload of a DIGEST."""
    return _DIGEST.pack(int(before_ms), *cells)


def read_digest(payload: bytes) -> tuple[int, list[int]] | None:
    """The time and the cells in a DIGEST; None if it is malformed."""
    if len(payload) != _DIGEST.size:
        return None
    before_ms, *cells = _DIGEST.unpack(payload)
    return before_ms, cells


def packed_cell(cell: Cell) -> bytes:
    """The payload of a CELL."""
    return _CELL.pack(int(cell.before_ms), int(cell.number), int(cell.is_answer)) + b"".join(cell.ids)


def read_cell(payload: bytes) -> Cell | None:
    """The content of a CELL; None if it is malformed."""
    size = len(payload) - _CELL.size
    if size < 0 or size % JOB_ID_BYTES or size > MOST_IDS * JOB_ID_BYTES:
        return None
    before_ms, number, is_answer = _CELL.unpack_from(payload)
    ids = [payload[at : at + JOB_ID_BYTES] for at in range(_CELL.size, len(payload), JOB_ID_BYTES)]
    for job_id in ids:
        if not is_job_id(job_id):
            return None
    return None if number >= CELLS or is_answer > 1 else Cell(before_ms, number, ids, is_answer=is_answer == 1)
