"""The payloads of JOBASK and JOBTOLD.

JOBASK: up to 100 job IDs, 40 bytes each. JOBTOLD: for each job its ID, then its fate (`core.fates.fate`).
"""

from __future__ import annotations

from typing import Final

from disqued.bus.frame import JOB_ID_BYTES
from disqued.core.fates.fate import CorruptFate, Fate, fate_bytes, pack_fate, unpack_fate
from disqued.core.jobs.jobid import is_job_id

MOST_ASKED: Final = 100
"""The most jobs that one message asks about."""


class MalformedError(Exception):
    """The payload is not that of the message; the text says why."""


def pack_questions(job_ids: list[bytes]) -> bytes:
    """The payload of a JOBASK."""
    return b"".join(job_ids)


def unpack_questions(payload: bytes) -> list[bytes]:
    """The IDs in a payload. Raises MalformedError."""
    if not payload or len(payload) % JOB_ID_BYTES or len(payload) > MOST_ASKED * JOB_ID_BYTES:
        raise MalformedError(f"questions of {len(payload)} bytes")
    job_ids = [payload[at : at + JOB_ID_BYTES] for at in range(0, len(payload), JOB_ID_BYTES)]
    if not all(map(is_job_id, job_ids)):
        raise MalformedError("a question is about something other than a job")
    return job_ids


def pack_answer(job_id: bytes, fate: Fate) -> bytes:
    """One answer in the payload of a JOBTOLD."""
    return job_id + pack_fate(fate)


def unpack_answers(payload: bytes) -> list[tuple[bytes, Fate]]:
    """The jobs and their fates in a payload. Raises MalformedError."""
    answers: list[tuple[bytes, Fate]] = []
    at = 0
    try:
        while at < len(payload):
            job_id = payload[at : at + JOB_ID_BYTES]
            at += JOB_ID_BYTES
            fate = unpack_fate(payload, at)
            at += int(fate_bytes(payload, at))
            if not is_job_id(job_id):
                raise MalformedError("an answer is about something other than a job")
            answers.append((job_id, fate))
    except CorruptFate as corrupt:
        raise MalformedError(str(corrupt)) from None
    if not answers or len(answers) > MOST_ASKED:
        raise MalformedError(f"{len(answers)} answers")
    return answers
