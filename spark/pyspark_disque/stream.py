"""What Spark calls for `readStream`: batches of leased jobs, kept leased until Spark is done with them.

- `latestOffset(start)`, on the driver: the batch that ended with `start` is in Spark's log, so its jobs are
  acknowledged. Then jobs are leased; the offset that is returned lists them.
- `partitions(start, end)`, on the driver: the list of `end` is cut into tasks; also for a batch that is done again
  after a restart, whose jobs are held from then on.
- `read(partition)`, on an executor: rows, from the bodies that came with the lease, or fetched by ID.
- `commit(end)`, on the driver: acknowledges, if that was not done.
- `stop()`, on the driver: hangs up. Nothing is given back: who goes on from the checkpoint reads the same jobs, and if
  nobody does, their retry time brings them back.

Spark asks for the next offset only after the batch before it is in its commit log, after a restart too, where it does
not call `commit`: therefore acknowledging is done there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from disqued.client import ConnectionFailed, DisqueError
from pyspark_disque.bodies import Bodies
from pyspark_disque.clock import Clock, Patience
from pyspark_disque.columns import GIVEN, Row, batches, require_known
from pyspark_disque.drain import Drain
from pyspark_disque.intake import Intake, Taken
from pyspark_disque.leases import Leases
from pyspark_disque.ledger import BEGINNING, Lease, Manifest, Offset, cut, pack, unpack
from pyspark_disque.options import Options

if TYPE_CHECKING:
    import pyarrow as pa

BODIES_KEPT_BYTES: Final = 32 << 20
"""The bodies of a batch travel with its tasks up to here; beyond, tasks fetch them."""
PARTITIONS_PER_NODE: Final = 2
IDLE_S: Final = 0.1
"""Spark asks a hundred times a second whether there is something new; the nodes are asked less often."""
REPORT_EVERY_S: Final = 1.0


@dataclass(frozen=True)
class JobsPartition(InputPartition):
    """What one task reads: jobs, and their bodies when they are at hand."""

    leases: tuple[Lease, ...]
    bodies: tuple[bytes, ...] | None


class QueueStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of a stream. It is pickled for tasks, so that all that can not be is made when it is first needed."""

    def __init__(self, options: Options, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = require_known(columns)
        self._driver: Driver | None = None

    def _at_driver(self) -> Driver:
        if self._driver is None:
            self._driver = Driver(self._options, keeps_bodies=set(self._columns) <= GIVEN)
        return self._driver

    # Spark's names and signatures.

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Before the first batch."""
        return pack(BEGINNING)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """The option `maxJobsPerTrigger`."""
        return ReadMaxRows(self._options.max_jobs_per_trigger)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        """Finish the batch that ended with `start` and lease the next one; `start` when there is nothing."""
        return self._at_driver().next_offset(start, limit)

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802 - Spark's name
        """How much waits and for how long, for the progress of the query."""
        return self._at_driver().backlog()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """What waits now is all that is to be read."""
        self._at_driver().drain_what_waits()

    def partitions(self, start: Offset, end: Offset) -> list[JobsPartition]:
        """The tasks of a batch."""
        return [] if start == end else self._at_driver().tasks(end)

    def commit(self, end: Offset) -> None:
        """The batch is done."""
        self._at_driver().commit(end)

    def stop(self) -> None:
        """Hang up."""
        if self._driver is not None:
            self._driver.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        assert isinstance(partition, JobsPartition)
        yield from batches(_rows(partition, self._options), self._columns)


def _rows(partition: JobsPartition, options: Options) -> Iterator[Row]:
    if partition.bodies is not None:
        for lease, body in zip(partition.leases, partition.bodies, strict=True):
            yield Row(lease.queue, lease.id, body, node=lease.node)
        return
    clock = Clock()
    intake = Intake(options, clock)
    try:
        yield from Bodies(options, intake, clock).rows(partition.leases)
    finally:
        intake.close()


class Driver:
    """The state of a running query, in the driver's Python process. Apart from the lease keeper one thread."""

    def __init__(self, options: Options, *, keeps_bodies: bool, clock: Clock | None = None) -> None:
        self._options = options
        self._keeps_bodies = keeps_bodies
        self._clock = clock or Clock()
        self._intake = Intake(options, self._clock)
        self._leases = Leases(options, self._clock)
        self._patience = Patience(options.give_up_after_s, self._clock)
        self._drain: Drain | None = None
        self._finished = BEGINNING.number
        self._held = BEGINNING.number
        self._bodies: dict[str, bytes] = {}
        self._last = (pack(BEGINNING), BEGINNING)
        self._few_since_s: float | None = None
        self._report: Offset | None = None
        self._report_until_s = 0.0

    def close(self) -> None:
        """Stop keeping leases, hang up."""
        self._leases.close()
        self._intake.close()

    # --- from batch to batch ------------------------------------------------------------------------------------------

    def next_offset(self, start: Offset, limit: ReadLimit) -> Offset:
        """See `QueueStream.latestOffset`."""
        before = self._read(start)
        while True:
            try:
                self.finish(before)
                taken = self._take(limit)
                break
            except ConnectionFailed as error:
                if self._drain is not None:  # the same offset would end the query
                    self._patience.bear(error)
                    continue
                if self._patience.is_over():
                    raise
                self._clock.sleep(IDLE_S)
                return start
        self._patience.succeeded()
        fresh = self._without_finished(taken, before)
        if not fresh:
            self._clock.sleep(IDLE_S)
            return start
        manifest = Manifest(before.number + 1, tuple(job.lease for job in fresh))
        self._hold(manifest)
        self._keep_bodies(fresh)
        self._last = (pack(manifest), manifest)
        return self._last[0]

    def _read(self, offset: Offset) -> Manifest:
        """The manifest of an offset; Spark hands the last one back again and again."""
        if offset != self._last[0]:
            self._last = (offset, unpack(offset))
        return self._last[1]

    def finish(self, manifest: Manifest) -> None:
        """Acknowledge the jobs of a batch that Spark is done with, once in the life of this process.

        Raises:
            ConnectionFailed: no node can be reached.
        """
        if manifest.number <= self._finished:
            return
        self._intake.acknowledge(manifest.jobs)
        self._leases.release(job.id for job in manifest.jobs)
        self._finished = manifest.number
        self._bodies = {}

    def commit(self, end: Offset) -> None:
        """As `finish`, but who can not be reached now is tried again before the next batch."""
        if end["batch"] > self._finished:
            with contextlib.suppress(ConnectionFailed):
                self.finish(self._read(end))

    def _hold(self, manifest: Manifest) -> None:
        if manifest.number > max(self._held, self._finished):
            self._leases.hold(manifest.jobs)
            self._held = manifest.number
            self._report_until_s = 0.0  # what waits is less now

    def _keep_bodies(self, taken: Sequence[Taken]) -> None:
        fits = self._keeps_bodies and sum(len(job.body) for job in taken) <= BODIES_KEPT_BYTES
        self._bodies = {job.lease.id: job.body for job in taken} if fits else {}

    def tasks(self, end: Offset) -> list[JobsPartition]:
        """The tasks of a batch, the same whenever it is asked for it."""
        manifest = self._read(end)
        self._hold(manifest)
        parts = self._options.num_partitions or PARTITIONS_PER_NODE * self._count_members()
        bodies = self._bodies
        return [
            JobsPartition(tuple(part), tuple(bodies[job.id] for job in part) if part[0].id in bodies else None)
            for part in cut(manifest.jobs, parts)
        ]

    def _count_members(self) -> int:
        while True:
            try:
                return len(self._intake.members())
            except ConnectionFailed as error:
                self._patience.bear(error)

    # --- leasing ------------------------------------------------------------------------------------------------------

    def drain_what_waits(self) -> None:
        """From now on only jobs that are there now are of interest, and then it is over."""
        while True:
            try:
                until_ms = self._intake.now_ms()
                break
            except ConnectionFailed as error:
                self._patience.bear(error)
        self._drain = Drain(self._intake, until_ms, self._clock, self._options.give_up_after_s)

    def _take(self, limit: ReadLimit) -> list[Taken]:
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else self._options.max_jobs_per_trigger
        if self._drain is not None:
            return self._drain.take(most)
        look = self._intake.look()
        if isinstance(limit, ReadAllAvailable):
            return self._intake.take(look, look.waiting)
        least = limit.min_rows if isinstance(limit, ReadMinRows) else self._options.min_jobs_per_trigger
        return self._intake.take(look, most) if self._are_enough(look.waiting, least) else []

    def _are_enough(self, waiting: int, least: int) -> bool:
        """Whether to begin a batch: enough jobs wait, or some do for long enough."""
        now_s = self._clock.now_s()
        if waiting == 0:
            self._few_since_s = None
            return False
        if self._few_since_s is None:
            self._few_since_s = now_s
        if waiting < least and now_s - self._few_since_s < self._options.max_trigger_delay_s:
            return False
        self._few_since_s = None
        return True

    def _without_finished(self, taken: Sequence[Taken], before: Manifest) -> list[Taken]:
        """Leave out what was delivered again although it is done: its acknowledgement came too late."""
        known = {job.id for job in before.jobs}
        again = [job.lease for job in taken if job.lease.id in known]
        if not again:
            return list(taken)
        with contextlib.suppress(ConnectionFailed):
            self._intake.acknowledge(again)
        return [job for job in taken if job.lease.id not in known]

    # --- progress -----------------------------------------------------------------------------------------------------

    def backlog(self) -> Offset | None:
        """How many jobs are queued at the nodes that answer, and how old the oldest is, in seconds."""
        if self._clock.now_s() >= self._report_until_s:
            with contextlib.suppress(DisqueError):  # the next call for an offset says so
                look = self._intake.look()
                oldest_ms = max((head.age_ms for head in self._intake.heads(look)), default=0)
                self._report = {"batch": self._held, "waiting": look.waiting, "oldestSeconds": oldest_ms // 1000}
            self._report_until_s = self._clock.now_s() + REPORT_EVERY_S
        return self._report
