"""Rows to jobs: what Spark calls for `df.write` and `df.writeStream`.

A sink is planned on the driver, where columns are checked and the members of the cluster are asked for, and travels to
the tasks as a value. Spark may run a task several times, at the same time too, and a stream runs a batch again after a
failure. What comes of that is the mode:

- *at least once*: each run adds its rows. A task that fails takes back what it knows it added, and so does the driver
  when the write fails, both as far as nodes can be reached.
- *deduplicated*: each row has a key, and all runs bring it to the same node (`senders.HomeNode`), which adds it once.
  The key is the column `key`, or `query/batch/partition/row` (of a batch write: `writeId/partition/row`). So it takes
  the same rows in the same order in each run, else a key column; a home that comes back with its memory within its
  patience; and a `window` longer than all runs take. Nothing is taken back that another run would find by its key: it
  would be answered with the ID of a job that is finished, and the row would be lost.

What was added is taken back with ACKJOB, see `senders.take_back`. Jobs that a worker has already run have been run.
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
from pyspark_disque.added import Ledger
from pyspark_disque.brokers import Brokers
from pyspark_disque.clock import Clock
from pyspark_disque.options import BadOption, Options
from pyspark_disque.rows import Layout
from pyspark_disque.senders import AnyNode, HomeNode, Sender, take_back

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType

log = logging.getLogger("pyspark_disque")

IDS_KEPT: Final = 1_000_000
"""A task remembers so many of the IDs that it added, to take them back if it fails: 27 MB."""
IDS_SENT: Final = 100_000
"""And tells the driver so many: Spark fails a write whose messages are above `spark.driver.maxResultSize` (1 GB)."""


@dataclass(frozen=True, slots=True)
class Added(WriterCommitMessage):
    """What a task tells the driver: how many rows it added, and the IDs of the first ones (`added.pack`)."""

    rows: int
    ids: bytes


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a task has to know. `members` are node IDs; empty if they could not be asked for."""

    options: Options
    layout: Layout
    members: tuple[str, ...]

    def add(self, batches: Iterable[RecordBatch], partition: int, name: str) -> Added:
        """Add the rows of one partition. `name` is what generated keys begin with.

        Raises:
            BadRow: a row can not be made a job.
            WriteFailed: rows could not be added.
        """
        clock = Clock()
        ledger = Ledger(IDS_KEPT)
        prefix = f"{name}/{partition}".encode() if self.options.deduplicated else b""
        with Brokers(self.options) as brokers:
            route = (
                HomeNode(brokers, self.members, clock.now_s)
                if self.options.deduplicated
                else AnyNode(brokers, partition, clock.now_s)
            )
            chance = random.Random()  # noqa: S311 - spreads waits, keeps no secret
            sender = Sender(brokers, route, self.options.give_up_after_s, ledger, clock, chance)
            try:
                for part in self.layout.slices(batches, partition, prefix):
                    sender.send(part)
            except Exception:
                if not self.options.deduplicated:
                    _take_back(brokers, ledger.packed())
                raise
        return Added(ledger.rows, ledger.packed(IDS_SENT))

    def take_back(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Finish what tasks said they added."""
        with Brokers(self.options) as brokers:
            for message in messages:
                if isinstance(message, Added) and message.ids:
                    _take_back(brokers, message.ids)


def _take_back(brokers: Brokers, ids: bytes) -> None:
    """As far as it goes: the failure that led here is what has to be heard."""
    try:
        told = take_back(brokers, ids)
    except DisqueError as error:
        log.warning("what was added could not be taken back: %s", error)
    else:
        log.info("took back %d jobs of a write that failed", told)


def _plan(options: Options, schema: StructType, *, patient: bool) -> Plan:
    """Check the columns, ask who is in the cluster. `patient` leaves it to the tasks when nobody answers now."""
    layout = Layout.of(schema, options)
    with Brokers(options) as brokers:
        try:
            members = tuple(member.id for member in brokers.members())
        except ConnectionError:
            if not patient:
                raise
            members = ()
    return Plan(options, layout, members)


class BatchSink(DataSourceArrowWriter):
    """The sink of `df.write`."""

    def __init__(self, plan: Plan, name: str) -> None:
        self._plan = plan
        self._name = name

    @classmethod
    def plan(cls, options: Options, schema: StructType, *, overwrite: bool) -> Self:
        """Made on the driver.

        Raises:
            BadOption: the mode or a column is wrong.
            ConnectionFailed: no node can be reached.
        """
        if overwrite:
            raise BadOption('a queue can not be overwritten: write with .mode("append")')
        return cls(_plan(options, schema, patient=False), options.write_id or uuid.uuid4().hex)

    def write(self, iterator: Iterator[RecordBatch]) -> Added:
        """Add one partition's rows, in a task."""
        context = TaskContext.get()
        assert context is not None
        return self._plan.add(iterator, context.partitionId(), self._name)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Take back what is known, on the driver, unless somebody may use the same keys again."""
        options, layout = self._plan.options, self._plan.layout
        if not options.deduplicated or (options.write_id is None and layout.key is None):
            self._plan.take_back(messages)


class StreamSink(DataSourceStreamArrowWriter):
    """The sink of `df.writeStream`. Spark makes one for each batch and sends it, and another one for each commit."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    @classmethod
    def plan(cls, options: Options, schema: StructType) -> Self:
        """Made on the driver. That nobody answers is for the tasks to wait out: a commit needs no node.

        Raises:
            BadOption: a column is wrong.
        """
        return cls(_plan(options, schema, patient=True))

    def write(self, iterator: Iterator[RecordBatch]) -> Added:
        """Add one partition's rows of a batch, in a task."""
        context = TaskContext.get()
        assert context is not None
        query = context.getLocalProperty("sql.streaming.queryId")
        batch = context.getLocalProperty("streaming.sql.batchId")
        assert query, "Spark tells tasks of a stream which query they are for"
        assert batch, "Spark tells tasks of a stream which batch they are for"
        return self._plan.add(iterator, context.partitionId(), f"{query}/{batch}")

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 - Spark's name
        """Take back what is known, unless the batch comes again under the same keys."""
        if not self._plan.options.deduplicated:
            self._plan.take_back(messages)
