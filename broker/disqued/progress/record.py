"""The record LOGENTRY in the append-only file: how it is loaded, and how a rewrite collects it.

In a rewritten file the entries stand before the jobs, so an entry is kept when its job is not known yet. Entries whose
jobs are not loaded are forgotten like those of jobs that end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from disqued.core.runtime.recordkind import RecordKind
from disqued.progress.kept import progress_of
from disqued.progress.words import LOG_RECORD, parse_record, record_fault, words_of

if TYPE_CHECKING:
    from disqued.core.lifecycle.records import Words
    from disqued.core.runtime.state import NodeState

_PART_JOBS: Final = 64


def load_record(state: NodeState, words: list[bytes]) -> None:
    """Take an entry."""
    job_id, line = parse_record(words[1])
    progress_of(state).logs.load(job_id, line)


def current_records(state: NodeState) -> Iterator[list[Words]]:
    """Yield the records of the logs of some jobs at a time."""
    logs = progress_of(state).logs
    table = state.lifecycle.table
    pending = list(logs.by_job)
    while pending:
        some, pending = pending[-_PART_JOBS:], pending[:-_PART_JOBS]
        records: list[Words] = []
        for job_id in some:
            log, job = logs.get(job_id), table.get(job_id)
            if log is not None and job is not None and job.retry_s > 0:
                records += [words_of(job_id, line) for line in log.lines()]
        yield records


RECORD: Final[RecordKind] = RecordKind(
    LOG_RECORD.decode(), 2, record_fault, load_record, current_records, is_sealed=True
)
