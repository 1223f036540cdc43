"""A kind of record in the append-only file, as a row: its format, how it is loaded, and how a rewrite collects it.

The room that owns the kind declares the row in `Subsystem.records`, and logs a record with
`state.lifecycle.journal.note((name, ...))`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from disqued.core.jobs.job import Job
from disqued.core.lifecycle.records import NodeRecords, RecordFormat, RecordTable, Words
from disqued.core.runtime.state import NodeState


@dataclass(frozen=True)
class RecordKind:
    """A kind of record. The functions get the words of a record, its name included."""

    name: str
    """The first word, in capitals."""
    words: int
    """The number of words of each record, with the name: at least 2; exactly 2 if the record is sealed."""
    fault: Callable[[list[bytes]], str]
    """Returns what is wrong with the words of a record; empty if nothing is. Such a record is damage in the file."""
    load: Callable[[NodeState, list[bytes]], None]
    """Does what a record says."""
    current: Callable[[NodeState], Iterator[list[Words]]]
    """Yields the records of everything that holds now, for a rewritten file.

    Each list has a bounded number of records, may be empty, and is built from what holds when it is asked for. Changes
    between two lists are logged with `journal.note` after them, so the iterator only has to tolerate them.
    """
    is_sealed: bool = False
    """Whether the word behind the name is sealed in the file (`core.lifecycle.records`), as in all newer kinds."""

    of_job: Callable[[NodeState, Job], Words | None] | None = None
    """Returns the record about a job, which follows that of the job in a rewritten file; None if there is none."""

    def on(self, state: NodeState) -> NodeRecords:
        """The functions of this kind for one node."""
        of_job = None if self.of_job is None else partial(self.of_job, state)
        return NodeRecords(partial(self.load, state), partial(self.current, state), of_job)


def record_table(kinds: Iterable[RecordKind]) -> RecordTable:
    """The table by which files are read. Raises ValueError when two kinds have one name."""
    table = RecordTable()
    for kind in kinds:
        table.add(RecordFormat(kind.name.encode(), kind.words, kind.fault, is_sealed=kind.is_sealed))
    return table
