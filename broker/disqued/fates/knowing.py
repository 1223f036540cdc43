"""What this node knows about the end of a job: from its records, and from the jobs that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqued.core.fates.fate import DEAD, DONE, NOTHING, WAITING, Fate
from disqued.core.jobs.job import ACKED
from disqued.fates.keeping import moves_of, origin_of

if TYPE_CHECKING:
    from disqued.core.jobs.job import Job
    from disqued.core.runtime.state import NodeState


def fate_here(state: NodeState, job_id: bytes) -> Fate:
    """What this node knows about the end of a job, or about that of the newest link of its chain that it knows."""
    fate = _fate_in_table(state, job_id)
    outside = state.events.fate_outside(job_id)
    return outside if outside.is_newer_than(fate) else fate


def _fate_in_table(state: NodeState, job_id: bytes) -> Fate:
    """The same from the table of jobs, and from the records of jobs that were in it."""
    table = state.lifecycle.table
    records = state.records
    job = table.get(job_id)
    record = records.get(job_id)
    origin = job_id
    if record is not None:
        origin = record.origin
    elif job is not None:
        origin = origin_of(job)
    fate = NOTHING
    for known in (record, records.get(origin), records.newest(origin)):
        if known is not None and known.fate.is_newer_than(fate):
            fate = known.fate
    links = table.chains.get(origin)
    first = job if origin == job_id else table.get(origin)
    if links is None and job is None and first is None:
        return fate
    for link in (job, first, *(links or ())):
        if link is None:
            continue
        told = _fate_of(link)
        # a link that lives says more than a record with as many moves: of an older job under this ID, or of a rival
        if told.is_newer_than(fate) or (link.state != ACKED and told.moves == fate.moves and fate.outcome != DONE):
            fate = told
    return fate


def _fate_of(job: Job) -> Fate:
    """What is known of a job that is here, without its record."""
    moves = moves_of(job)
    if job.state == ACKED:
        return Fate(DONE, 0, 0, moves) if job.is_known_as_done else NOTHING
    if job.is_dead_letter:
        return Fate(DEAD, 0, 0, moves, job.id, None, int(job.repl))
    return Fate(WAITING, 0, 0, moves, None, None, int(job.repl))
