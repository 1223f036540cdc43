"""The writers behind `df.write` and `df.writeStream`, which add rows as jobs.

The driver plans a write: it checks the columns and asks for the members of the cluster. Spark pickles the plan for the
tasks. Spark may run a task several times, even concurrently, and a stream runs a batch again after a failure. The mode
decides what this means for the rows:

- *at least once*: each run adds its rows. A task that fails rolls back the jobs that it knows it added, and the driver
  does the same when the write fails, if the nodes can be reached.
- *deduplicated*: each row has a key, and all runs send it to the same node (`senders.HomeNode`), which adds it once.
  The key is the column `key`, or `query/batch/partition/row` (in a batch write `writeId/partition/row`). This requires
  the same rows in the same order in each run, or a key column; a home that returns with its memory within its timeout;
  and a `window` that is longer than all runs. Jobs that another run would find by their keys are not rolled back: the
  broker would answer that run with the ID of an acknowledged job, and the row would be lost.

With a column `job_id`, each row names its job, and any node adds it once. For the same reason, such jobs are not rolled
back.

A rollback acknowledges the jobs (`senders.roll_back`). It cannot undo jobs that a worker has already run.
"""

from __future__ import annotations

import logging
import random
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from disqued.client import DisqueError
from pyspark_disque.addedjobs import AddedJobs
from pyspark_disque.brokers import Brokers
from pyspark_disque.clock import Clock
from pyspark_disque.options import Options
from pyspark_disque.optionvalues import BadOption
from pyspark_disque.rows import Layout
from pyspark_disque.senders import AnyNode, HomeNode, Sender, roll_back

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType

log = logging.getLogger("pyspark_disque")

IDS_KEPT: Final = 1_000_000
"""The number of job IDs that a task keeps for a rollback: 27 MB."""
IDS_SENT: Final = 100_000
"""The number that it sends to the driver; Spark fails a write above `spark.driver.maxResultSize` (1 GB)."""


@dataclass(frozen=True, slots=True)
class CommitMessage(WriterCommitMessage):
    """What a task reports to the driver: the number of rows it added, and the packed IDs of the first ones."""

    rows: int
    ids: bytes


@dataclass(frozen=True, slots=True)
class WritePlan:
    """Everything that a task needs. `members` are node IDs; empty if no node could be reached."""

    options: Options
    layout: Layout
    members: tuple[str, ...]

    @property
    def is_found_again(self) -> bool:
        """Whether another run of a task finds the jobs of the first one, so that they must not be rolled back."""
        return self.options.deduplicated or self.layout.job_id is not None

    def add(self, batches: Iterable[RecordBatch], partition: int, name: str) -> CommitMessage:
        """Add the rows of one partition. `name` is the prefix of generated keys.

        Raises:
            BadRow: a row cannot become a job.
            WriteFailed: rows could not be added.
        """
        clock = Clock()
        added = AddedJobs(IDS_KEPT)
        prefix = f"{name}/{partition}".encode() if self.options.deduplicated else b""
        with Brokers(self.options) as brokers:
            route = (
                HomeNode(brokers, self.members, clock.now_s)
                if self.options.deduplicated
                else AnyNode(brokers, partition, clock.now_s)
            )
            rng = random.Random()  # noqa: S311 - jitter, not a secret
            sender = Sender(brokers, route, self.options.give_up_after_s, added, clock, rng)
            try:
                for part in self.layout.slices(batches, partition, prefix):
                    sender.send(part)
            except Exception:
                if not self.is_found_again:
                    _roll_back(brokers, added.packed())
                raise
        return CommitMessage(added.rows, added.packed(IDS_SENT))

    def roll_back(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Roll back the jobs that tasks reported."""
        with Brokers(self.options) as brokers:
            for message in messages:
                if isinstance(message, CommitMessage) and message.ids:
                    _roll_back(brokers, message.ids)


def _roll_back(brokers: Brokers, ids: bytes) -> None:
    """Roll back jobs, and only log a failure: the caller raises the error that caused the rollback."""
    try:
        count = roll_back(brokers, ids)
    except DisqueError as error:
        log.warning("cannot roll back the jobs of a failed write error=%s", error)
    else:
        log.info("rolled back a failed write jobs=%d", count)


def _plan(options: Options, schema: StructType, *, require_node: bool) -> WritePlan:
    """Check the columns and ask for the members.

    Raises:
        BadOption: a column is wrong.
        ConnectionFailed: no node can be reached, and `require_node` is true.
    """
    layout = Layout.of(schema, options)
    with Brokers(options) as brokers:
        try:
            members = tuple(member.id for member in brokers.members())
        except ConnectionError:
            if require_node:
                raise
            members = ()
    return WritePlan(options, layout, members)


class BatchSink(DataSourceArrowWriter):
    """The sink of `df.write`."""

    def __init__(self, plan: WritePlan, name: str) -> None:
        self._plan = plan
        self._name = name

    @classmethod
    def plan(cls, options: Options, schema: StructType, *, overwrite: bool) -> Self:
        """Plan the write, on the driver.

        Raises:
            BadOption: the mode or a column is wrong.
            ConnectionFailed: no node can be reached.
        """
        if overwrite:
            raise BadOption('cannot overwrite a queue; use .mode("append")')
        return cls(_plan(options, schema, require_node=True), options.write_id or uuid.uuid4().hex)

    def write(self, iterator: Iterator[RecordBatch]) -> CommitMessage:
        """Add the rows of one partition, in a task."""
        context = TaskContext.get()
        assert context is not None
        return self._plan.add(iterator, context.partitionId(), self._name)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Roll back the reported jobs, on the driver, unless another write may use the same keys."""
        options, layout = self._plan.options, self._plan.layout
        has_names_of_its_own = options.deduplicated and options.write_id is None and layout.key is None
        if has_names_of_its_own or not self._plan.is_found_again:
            self._plan.roll_back(messages)


class StreamSink(DataSourceStreamArrowWriter):
    """The sink of `df.writeStream`. Spark makes one for the tasks of each batch, and another one for each commit."""

    def __init__(self, plan: WritePlan) -> None:
        self._plan = plan

    @classmethod
    def plan(cls, options: Options, schema: StructType) -> Self:
        """Plan the write, on the driver, even if no node can be reached: the tasks wait, and a commit needs no node.

        Raises:
            BadOption: a column is wrong.
        """
        return cls(_plan(options, schema, require_node=False))

    def write(self, iterator: Iterator[RecordBatch]) -> CommitMessage:
        """Add the rows of one partition of a batch, in a task."""
        context = TaskContext.get()
        assert context is not None
        query = context.getLocalProperty("sql.streaming.queryId")
        batch = context.getLocalProperty("streaming.sql.batchId")
        assert query, "Spark sets the query ID for the tasks of a stream"
        assert batch, "Spark sets the batch ID for the tasks of a stream"
        return self._plan.add(iterator, context.partitionId(), f"{query}/{batch}")

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 - Spark's name
        """Roll back the reported jobs, unless a replay of the batch uses the same keys."""
        if not self._plan.is_found_again:
            self._plan.roll_back(messages)
