"""The progress log of a job: of one that this node has, or with the record of one that ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from disqued.core.jobs.joblog import JobLog
    from disqued.core.runtime.state import NodeState


def log_of(state: NodeState, job_id: bytes) -> JobLog | None:
    """The progress log of a job; None if this node has none, or if the job left with no record."""
    log = state.lifecycle.logs.get(job_id)
    if log is not None and state.lifecycle.table.get(job_id) is not None:
        return log
    record = state.records.get(job_id)
    return None if record is None else record.log
