"""What Spark calls for `spark.read`: a snapshot of the jobs that wait, or with `consume` the jobs themselves.

Filters on `queue` and `state` go to the nodes, where Spark hands them over (the setting
`spark.sql.python.filterPushdown.enabled`). Spark looks at the rows again in any case, so that the result is the same
without: a name that is no UTF-8 is compared as it is shown. What is consumed is another matter, for it is gone: there
the option `queue` says what to take, better than a filter.

Spark keeps the plan of a loaded frame, that of the last filter that it handed over too, and uses it for a later action
without a filter (seen in 4.3). Who switches the setting on loads a frame anew for each question.
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
    return BatchReader(options, columns)


class BatchReader(DataSourceReader):
    """The reader of a batch. Pickled for tasks: values only."""

    def __init__(self, options: Options, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = require_known(columns)
        self._narrowed = Narrowed(frozenset(options.states))

    @property
    def pushFilters(self) -> PushDown:  # noqa: N802 - Spark's name
        """Take in filters; all of them stay with Spark as well."""
        return PushDown(self)

    def narrow(self, filters: Iterable[Filter]) -> None:
        """Ask nodes for less: only for what the filters let through."""
        for condition in filters:
            self._narrowed = _narrower(self._narrowed, condition)

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


class PushDown:
    """The method `pushFilters` of a reader, for a Spark in which the setting may be off.

    Spark refuses a reader that implements the method while the setting is off, instead of leaving it alone. It looks at
    which function stands behind the method: this one says that it is the base class's, which takes no filter.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, reader: BatchReader) -> None:
        self._reader = reader

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        """Narrow what is read; all filters stay with Spark."""
        self._reader.narrow(filters)
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
