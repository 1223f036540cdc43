"""Giving claims with deliveries.

The first delivery with a claim is that of a client that asks for one (GETJOB WITHCLAIM). From then on each delivery of
the job has a new claim, whether its client asks or not: those before are stale.

With `claim-log`, a record CLAIM in the append-only file keeps each claim; otherwise those that the clock of this node
would not exceed after a crash, because a node with another clock gave the one before. A rewritten file has the last one
among the attributes of the job.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mypy_extensions import i64

from disqued.core.jobs.claims import MOST, NODE_BITS, claim_of, next_claim
from disqued.core.jobs.job import Job
from disqued.core.jobs.jobid import JOB_ID_BYTES, is_job_id
from disqued.core.lifecycle.records import Words
from disqued.core.runtime.claiming import learn_claim
from disqued.core.runtime.recordkind import RecordKind
from disqued.core.runtime.state import NodeState
from disqued.delivery.counters import CLAIMS

CLAIM_RECORD: Final = b"CLAIM"
RECENT_MS: Final = 1000
"""How far claims may be ahead of the clock without a record: no job comes back sooner after a crash."""
_CONTENT: Final = re.compile(rb"(\S{40}) (\d{1,19})")
"""The content of a record: ID, claim."""


def is_claimed(job: Job) -> bool:
    """Whether an earlier delivery of the job had a claim."""
    return job.extra is not None and job.extra.claimed


def grant(state: NodeState, job: Job) -> None:
    """Give a job that is delivered a claim, and its worker a whole retry time."""
    claim = next_claim(claim_of(job), state.now_ms, state.view.claim_number)
    learn_claim(state, job, claim)
    ahead_ms: i64 = (claim >> NODE_BITS) - state.now_ms
    logs = state.config.claim_log or ahead_ms > RECENT_MS
    if logs and job.retry_s > 0:  # otherwise the job is not in the file any more
        state.lifecycle.journal.note((CLAIM_RECORD, b"%b %d" % (job.id, claim)))
    state.lifecycle.postpone(job, state.now_ms)
    state.counters.add(CLAIMS)


# --- on disk ----------------------------------------------------------------------------------------------------------


def parse_record(content: bytes) -> tuple[bytes, int]:
    """The ID and the claim in the content of a valid record."""
    return content[:JOB_ID_BYTES], int(content[JOB_ID_BYTES + 1 :])


def record_fault(words: list[bytes]) -> str:
    """Return what is wrong with a CLAIM record; empty if nothing is."""
    found = _CONTENT.fullmatch(words[1])
    if found is not None and is_job_id(found[1]) and 0 < int(found[2]) <= MOST:
        return ""
    return f"CLAIM with {words[1][:80]!r} instead of a job ID and a claim"


def load_record(state: NodeState, words: list[bytes]) -> None:
    """Note the claim of a job."""
    job_id, claim = parse_record(words[1])
    job = state.lifecycle.table.get(job_id)
    if job is not None:
        learn_claim(state, job, claim)


def current_records(_state: NodeState) -> Iterator[list[Words]]:
    """Yield nothing: the records of the jobs have their claims."""
    yield from ()


RECORD: Final[RecordKind] = RecordKind("CLAIM", 2, record_fault, load_record, current_records, is_sealed=True)
