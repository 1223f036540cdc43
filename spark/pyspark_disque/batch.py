"""The reader behind `spark.read`: a snapshot of the queued jobs, or with `consume` the jobs themselves.

With the option `pushDownFilters`, the nodes evaluate filters on `queue` and `state`. Spark evaluates them again, so the
result is the same without the option; a queue name that is not UTF-8 is compared in its displayed form. Push-down is an
option for two reasons: Spark refuses a reader that accepts filters unless its own setting is on, and Spark 4.3 reuses
the plan of a loaded frame, with its last filter, for a later action without a filter. With push-down, load a new frame
for each query. Consuming reads accept no filters, because a filtered job would be lost: use the option `queue`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, EqualTo, Filter, In, InputPartition

from disqued.client import ConnectionFailed
from pyspark_disque.clock import Clock, RetryDeadline
from pyspark_disque.columns import check_columns, display_name
from pyspark_disque.consume import ConsumeTask, plan_consume, run_consume
from pyspark_disque.jobreader import Backlog, JobReader
from pyspark_disque.options import Options
from pyspark_disque.optionvalues import BadOption
from pyspark_disque.snapshot import ScanFilter, ScanTask, plan_scan, run_scan

if TYPE_CHECKING:
    import pyarrow as pa


def batch_reader(options: Options, columns: Sequence[str]) -> DataSourceReader:
    """Return the reader for `spark.read`."""
    return (FilteringReader if options.push_down_filters else BatchReader)(options, columns)


class BatchReader(DataSourceReader):
    """Reads a batch. Spark pickles it for the tasks, so it holds only values."""

    def __init__(self, options: Options, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = check_columns(columns)
        self._scan_filter = ScanFilter(frozenset(options.states))

    def partitions(self) -> Sequence[InputPartition]:
        """Plan the tasks."""
        clock = Clock()
        reader = JobReader(self._options, clock)
        try:
            backlog = _whole_backlog(reader, RetryDeadline(self._options.give_up_after_s, clock))
            if not self._options.consume:
                _refuse_ordered(reader, backlog)
        finally:
            reader.close()
        plan = plan_consume if self._options.consume else plan_scan
        return [InputPartition(task) for task in plan(backlog, self._options, self._scan_filter)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of one task. Without any task, Spark passes a partition with the value None."""
        match partition.value:
            case ScanTask() as task:
                yield from run_scan(task, self._options, self._columns)
            case ConsumeTask() as task:
                yield from run_consume(task, self._options, self._columns)


class FilteringReader(BatchReader):
    """A batch reader that accepts filters."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Narrow what the nodes are asked for, and return all filters: Spark evaluates them again."""
        for condition in filters:
            self._scan_filter = _narrow(self._scan_filter, condition)
        return filters


def _refuse_ordered(reader: JobReader, backlog: Backlog) -> None:
    """Refuse to leave jobs out of a snapshot: the nodes do not list the jobs of ordered queues.

    Raises:
        BadOption: a queue is ordered.
    """
    names = reader.options.queue_names() or [name for lengths in backlog.lengths.values() for name in lengths]
    for name in sorted(reader.ordered_among(names)):
        raise BadOption(
            f"{display_name(name)!r} is an ordered queue, of which there are no snapshots; read it as a stream, or "
            "with the option consume"
        )


def _narrow(scan_filter: ScanFilter, condition: Filter) -> ScanFilter:
    match condition:
        case EqualTo(attribute=(column,), value=value):
            allowed = frozenset((value,))
        case In(attribute=(column,), value=values):
            allowed = frozenset(values)
        case _:
            return scan_filter
    if column == "queue":
        return scan_filter.only_queues(allowed)
    return scan_filter.only_states(allowed) if column == "state" else scan_filter


def _whole_backlog(reader: JobReader, deadline: RetryDeadline) -> Backlog:
    """Return the backlog of all members; a part of it would be a wrong result.

    Raises:
        ConnectionFailed: a member does not answer.
    """
    while True:
        try:
            backlog = reader.backlog()
        except ConnectionFailed as error:
            deadline.retry_or_raise(error)
            continue
        if not backlog.unreachable:
            return backlog
        names = ", ".join(member.address for member in backlog.unreachable)
        deadline.retry_or_raise(ConnectionFailed(f"cannot reach {names}: the jobs queued there would be missing"))
