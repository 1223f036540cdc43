"""RECORD and ENDRECORD in the append-only file: the record of a finished job is kept, or forgotten before its time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disqued.core.fates.fate import Fate
from disqued.core.fates.record import Record
from disqued.core.fates.stored import RECORD, fault_of, store, stored
from disqued.core.jobs.jobid import is_job_id
from disqued.core.runtime.recordkind import RecordKind

if TYPE_CHECKING:
    from disqued.core.lifecycle.records import Words
    from disqued.core.runtime.state import NodeState

FORGOTTEN: Final = b"ENDRECORD"
_PART_BYTES: Final = 1 << 20
_PART_RECORDS: Final = 500


def note_kept(state: NodeState, record: Record) -> None:
    """Log that a record is kept."""
    journal = state.lifecycle.journal
    if journal.on or journal.copying:
        journal.note(_words(state, record))


def note_forgotten(state: NodeState, job_id: bytes) -> None:
    """Log that a record is forgotten before its time."""
    state.lifecycle.journal.note((FORGOTTEN, job_id))


def _words(state: NodeState, record: Record) -> Words:
    ahead_ms: i64 = state.wall_ahead_s * 1000
    return RECORD, store(record.job_id, record.queue, record.origin, record.fate, record.until_ms, ahead_ms, record.log)


def load_kept(state: NodeState, words: list[bytes]) -> None:
    """Keep the record, unless its time is over. A job that was acknowledged ends with it."""
    found = stored(words[1])
    assert found is not None
    ahead_ms: i64 = state.wall_ahead_s * 1000
    fate = found.fate
    if ahead_ms != 0 and fate.ended_ms > 0:
        fate = Fate(fate.outcome, fate.ended_ms - ahead_ms, fate.claim, fate.moves, fate.successor, fate.result)
    record = Record(found.job_id, found.queue, found.origin, fate, found.until_ms - ahead_ms, found.log)
    if record.is_final:
        job = state.lifecycle.table.get(record.job_id)
        if job is not None:
            state.lifecycle.drop(job)
    known = state.records.get(record.job_id)
    if known is not None:
        state.records.remove(known)
    if record.until_ms > state.now_ms:
        state.records.add(record)


def load_forgotten(state: NodeState, words: list[bytes]) -> None:
    """Forget the record."""
    known = state.records.get(words[1])
    if known is not None:
        state.records.remove(known)


def current_records(state: NodeState) -> Iterator[list[Words]]:
    """Yield all records, about a megabyte at a time. Those that change meanwhile are logged behind them."""
    records = state.records
    for number in range(int(records.shards)):
        left = records.shard(number)
        while left:
            part: list[Words] = []
            size: i64 = 0
            while left and size < _PART_BYTES and len(part) < _PART_RECORDS:
                record = left.pop()
                if records.get(record.job_id) is record:
                    part.append(_words(state, record))
                    size += record.size_bytes
            yield part


def no_records(_state: NodeState) -> Iterator[list[Words]]:
    """Yield nothing: what is forgotten is not in a rewritten file."""
    yield from ()


def forgotten_fault(words: list[bytes]) -> str:
    """What is wrong with an ENDRECORD; empty if nothing is."""
    return "" if is_job_id(words[1]) else f"ENDRECORD with {words[1][:80]!r} instead of a job ID"


def kept_fault(words: list[bytes]) -> str:
    """What is wrong with a RECORD; empty if nothing is."""
    return fault_of(words[1])


RECORDS: Final = (
    RecordKind("RECORD", 2, kept_fault, load_kept, current_records, is_sealed=True),
    RecordKind("ENDRECORD", 2, forgotten_fault, load_forgotten, no_records, is_sealed=True),
)
