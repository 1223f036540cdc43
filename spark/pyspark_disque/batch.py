"""What Spark calls for `spark.read`: a snapshot of the jobs that wait, or with `consume` the jobs themselves.

With the option `pushDownFilters` filters on `queue` and `state` go to the nodes. Spark looks at the rows again, so that
the result is the same without: a name that is no UTF-8 is compared as it is shown. It is an option because Spark
refuses a reader that takes filters unless it is set to hand them over, and because it keeps the plan of a loaded frame,
with the last filter, and uses it for a later action without one (seen in 4.3): who wants it loads a frame anew for each
question. What is consumed is gone, so there the option `queue` says what to take.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, EqualTo, Filter, In, InputPartition

from disqued.client import ConnectionFailed
from pyspark_disque.clock import Clock, Patience
from pyspark_disque.columns import require_known
from pyspark_disque.consume import TakingPart, consumed, plan_taking
from pyspark_disque.intake import Intake, Look
from pyspark_disque.options import Options
from pyspark_disque.snapshot import Narrowed, ScanPart, plan_scans, scanned

if TYPE_CHECKING:
    import pyarrow as pa


def batch_reader(options: Options, columns: Sequence[str]) -> DataSourceReader:
    """What `spark.read` uses."""
    return (NarrowingReader if options.push_down_filters else BatchReader)(options, columns)


class BatchReader(DataSourceReader):
    """The reader of a batch. Pickled for tasks: values only."""

    def __init__(self, options: Options, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = require_known(columns)
        self._narrowed = Narrowed(frozenset(options.states))

    def partitions(self) -> Sequence[InputPartition]:
        """The tasks."""
        clock = Clock()
        intake = Intake(self._options, clock)
        try:
            look = _look_at_all(intake, Patience(self._options.give_up_after_s, clock))
        finally:
            intake.close()
        plan = plan_taking if self._options.consume else plan_scans
        return [InputPartition(part) for part in plan(look, self._options, self._narrowed)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task. Spark makes up a partition, of None, when there is none."""
        match partition.value:
            case ScanPart() as part:
                yield from scanned(part, self._options, self._columns)
            case TakingPart() as part:
                yield from consumed(part, self._options, self._columns)


class NarrowingReader(BatchReader):
    """A reader that takes filters."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Ask nodes only for what the filters let through; all of them stay with Spark."""
        for condition in filters:
            self._narrowed = _narrower(self._narrowed, condition)
        return filters


def _narrower(narrowed: Narrowed, condition: Filter) -> Narrowed:
    match condition:
        case EqualTo(attribute=(column,), value=value):
            allowed = frozenset((value,))
        case In(attribute=(column,), value=values):
            allowed = frozenset(values)
        case _:
            return narrowed
    if column == "queue":
        return narrowed.to_queues(allowed)
    return narrowed.to_states(allowed) if column == "state" else narrowed


def _look_at_all(intake: Intake, patience: Patience) -> Look:
    """What waits everywhere: part of it would be a wrong answer.

    Raises:
        ConnectionFailed: a member does not answer.
    """
    while True:
        try:
            look = intake.look()
        except ConnectionFailed as error:
            patience.bear(error)
            continue
        if not look.away:
            return look
        names = ", ".join(member.address for member in look.away)
        patience.bear(ConnectionFailed(f"{names} can not be reached: what waits there would be missing"))
