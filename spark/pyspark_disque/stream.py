"""The reader behind `spark.readStream`: batches of leased jobs, with leases that last until Spark commits the batch.

- `latestOffset(start)`, on the driver: acknowledges the batch that ended with `start`, which is in Spark's commit log,
  then leases jobs and returns the offset that lists them.
- `partitions(start, end)`, on the driver: splits the jobs of `end` into tasks. For a batch that is replayed after a
  restart, it also starts to renew their leases.
- `read(partition)`, on an executor: returns rows, those that came with the task, or fetched by ID.
- `commit(end)`, on the driver: acknowledges the batch, unless that is already done.
- `stop()`, on the driver: closes the connections without returning jobs. A query that continues from the checkpoint
  reads the same jobs. Otherwise they are requeued after their retry time.

Spark asks for the next offset only after the previous batch is in its commit log. After a restart it does so without
calling `commit`. Therefore `latestOffset` acknowledges as well.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
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
from pyspark_disque.clock import Clock, RetryDeadline
from pyspark_disque.columns import LEASED_COLUMNS, batches, check_columns, leased_batches, pack, unpack
from pyspark_disque.drain import Drain
from pyspark_disque.jobfetcher import JobFetcher
from pyspark_disque.jobreader import JobReader, LeasedJobs
from pyspark_disque.leaserenewer import LeaseRenewer
from pyspark_disque.offsets import BEGINNING, JobGroup, Manifest, Offset, decode_offset, encode_offset, split
from pyspark_disque.options import Options

if TYPE_CHECKING:
    import pyarrow as pa

BODIES_KEPT_BYTES: Final = 32 << 20
"""The tasks of a batch carry its bodies up to this size; the tasks of a larger batch fetch them."""
PARTITIONS_PER_NODE: Final = 2
IDLE_S: Final = 0.1
"""The pause after an empty poll: Spark polls 100 times a second, which is too often for the nodes."""
REPORT_EVERY_S: Final = 1.0


@dataclass(frozen=True)
class JobsPartition(InputPartition):
    """What one task reads: rows (see `columns.pack`) if the driver has the bodies, or else the jobs to fetch."""

    jobs: tuple[JobGroup, ...]
    rows: bytes | None = None


class QueueStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a stream. Spark pickles it for the tasks, so it makes what cannot be pickled on first use."""

    def __init__(self, options: Options, columns: Sequence[str]) -> None:
        self._options = options
        self._columns = check_columns(columns)
        self._driver: Driver | None = None

    def _at_driver(self) -> Driver:
        if self._driver is None:
            self._driver = Driver(self._options, self._columns)
        return self._driver

    # Spark's names and signatures.

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Return the offset before the first batch."""
        return encode_offset(BEGINNING)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the option `maxJobsPerTrigger`."""
        return ReadMaxRows(self._options.max_jobs_per_trigger)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        """Acknowledge the batch that ended with `start` and lease the next one; return `start` if there is no job."""
        return self._at_driver().next_offset(start, limit)

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802 - Spark's name
        """Return the number of queued jobs and the age of the oldest one, for the progress of the query."""
        return self._at_driver().report()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Read only the jobs that are queued now, then end."""
        self._at_driver().start_drain()

    def partitions(self, start: Offset, end: Offset) -> list[JobsPartition]:
        """Return the tasks of a batch."""
        return [] if start == end else self._at_driver().tasks(end)

    def commit(self, end: Offset) -> None:
        """Acknowledge a batch that Spark committed."""
        self._at_driver().commit(end)

    def stop(self) -> None:
        """Close the connections."""
        if self._driver is not None:
            self._driver.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task."""
        assert isinstance(partition, JobsPartition)
        if partition.rows is not None:
            yield from unpack(partition.rows)
            return
        clock = Clock()
        reader = JobReader(self._options, clock)
        try:
            yield from batches(JobFetcher(self._options, reader, clock).rows(partition.jobs), self._columns)
        finally:
            reader.close()


class Driver:
    """The state of a running query, in the driver's Python process. One thread, apart from the lease renewer."""

    def __init__(self, options: Options, columns: Sequence[str], clock: Clock | None = None) -> None:
        self._options = options
        self._columns = columns
        self._clock = clock or Clock()
        self._reader = JobReader(options, self._clock)
        self._renewer = LeaseRenewer(options, self._clock)
        self._deadline = RetryDeadline(options.give_up_after_s, self._clock)
        self._drain: Drain | None = None
        self._finished = BEGINNING.number
        self._held = BEGINNING.number
        self._bodies: tuple[int, list[bytes]] = (BEGINNING.number, [])
        self._last = (encode_offset(BEGINNING), BEGINNING)
        self._few_since_s: float | None = None
        self._last_report: Offset | None = None
        self._report_due_s = 0.0

    def close(self) -> None:
        """Stop renewing leases and close the connections."""
        self._renewer.close()
        self._reader.close()

    # --- batches ------------------------------------------------------------------------------------------------------

    def next_offset(self, start: Offset, limit: ReadLimit) -> Offset:
        """See `QueueStream.latestOffset`."""
        before = self._manifest(start)
        while True:
            try:
                self.finish(before)
                leased = self._lease(limit)
                break
            except ConnectionFailed as error:
                if self._drain is not None:  # returning the same offset would end the query
                    self._deadline.retry_or_raise(error)
                    continue
                if self._deadline.note_failure():
                    raise
                self._clock.sleep(IDLE_S)
                return start
        self._deadline.reset()
        fresh = self._without_finished(leased, before)
        if not fresh:
            if self._drain is None:
                self._clock.sleep(IDLE_S)
            return start
        manifest = Manifest(before.number + 1, tuple(jobs.group for jobs in fresh))
        self._hold(manifest, min(jobs.requeue_at_s for jobs in fresh))
        self._keep_bodies(manifest.number, fresh)
        self._last = (encode_offset(manifest), manifest)
        return self._last[0]

    def _manifest(self, offset: Offset) -> Manifest:
        """Return the manifest of an offset, cached because Spark passes the last one repeatedly."""
        if offset != self._last[0]:
            self._last = (offset, decode_offset(offset))
        return self._last[1]

    def finish(self, manifest: Manifest) -> None:
        """Acknowledge the jobs of a batch that Spark committed, unless this process already did.

        Raises:
            ConnectionFailed: no node can be reached.
        """
        if manifest.number <= self._finished:
            return
        self._reader.acknowledge(manifest.groups)
        self._renewer.release(manifest.number)
        self._finished = manifest.number
        self._bodies = (BEGINNING.number, [])

    def commit(self, end: Offset) -> None:
        """Call `finish`; if no node can be reached, the driver retries before the next batch."""
        if end["batch"] > self._finished:
            with contextlib.suppress(ConnectionFailed):
                self.finish(self._manifest(end))

    def _hold(self, manifest: Manifest, requeue_at_s: float = -math.inf) -> None:
        if manifest.number > max(self._held, self._finished):
            self._renewer.hold(manifest.number, manifest.groups, requeue_at_s)
            self._held = manifest.number
            self._report_due_s = 0.0  # the backlog has shrunk

    def _keep_bodies(self, number: int, leased: Sequence[LeasedJobs]) -> None:
        size = sum(sum(map(len, jobs.bodies)) for jobs in leased)
        if set(self._columns) <= LEASED_COLUMNS and size <= BODIES_KEPT_BYTES:
            self._bodies = (number, list(chain.from_iterable(jobs.bodies for jobs in leased)))

    def tasks(self, end: Offset) -> list[JobsPartition]:
        """Return the tasks of a batch; each call for the same offset returns the same tasks."""
        manifest = self._manifest(end)
        self._hold(manifest)
        parts = self._options.num_partitions or PARTITIONS_PER_NODE * self._count_members()
        split_jobs = split(manifest.groups, parts)
        number, bodies = self._bodies
        if number != manifest.number:
            return [JobsPartition(groups) for groups in split_jobs]
        left = iter(bodies)
        return [JobsPartition((), self._pack(groups, left)) for groups in split_jobs]

    def _pack(self, groups: Sequence[JobGroup], bodies: Iterator[bytes]) -> bytes:
        count = sum(len(group.ids) for group in groups)
        return pack(leased_batches(groups, list(islice(bodies, count)), self._columns), self._columns)

    def _count_members(self) -> int:
        while True:
            try:
                return len(self._reader.members())
            except ConnectionFailed as error:
                self._deadline.retry_or_raise(error)

    # --- leases -------------------------------------------------------------------------------------------------------

    def start_drain(self) -> None:
        """Read only the jobs that are queued now, then end."""
        while True:
            try:
                until_ms = self._reader.now_ms()
                break
            except ConnectionFailed as error:
                self._deadline.retry_or_raise(error)
        self._drain = Drain(self._reader, until_ms, self._clock, self._options.give_up_after_s)

    def _lease(self, limit: ReadLimit) -> list[LeasedJobs]:
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else self._options.max_jobs_per_trigger
        if self._drain is not None:
            return self._drain.next_jobs(most)
        backlog = self._reader.backlog()
        if isinstance(limit, ReadAllAvailable):
            return self._reader.lease(backlog, backlog.waiting)
        least = limit.min_rows if isinstance(limit, ReadMinRows) else self._options.min_jobs_per_trigger
        return self._reader.lease(backlog, most) if self._are_enough(backlog.waiting, least) else []

    def _are_enough(self, waiting: int, least: int) -> bool:
        """Return whether to begin a batch: enough jobs are queued, or some have been for `maxTriggerDelay`."""
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

    def _without_finished(self, leased: Sequence[LeasedJobs], before: Manifest) -> list[LeasedJobs]:
        """Leave out jobs of the previous batch that were delivered again because they were acknowledged too late."""
        known = set(before.ids)
        again = [jobs.group._replace(ids=tuple(known.intersection(jobs.group.ids))) for jobs in leased]
        if any(group.ids for group in again):
            with contextlib.suppress(ConnectionFailed):
                self._reader.acknowledge(again)
        return [kept for jobs in leased if (kept := jobs.without(known)).group.ids]

    # --- progress -----------------------------------------------------------------------------------------------------

    def report(self) -> Offset | None:
        """Return the number of jobs queued at the nodes that answer, and the age of the oldest one in seconds."""
        if self._clock.now_s() >= self._report_due_s:
            with contextlib.suppress(DisqueError):  # the next call for an offset reports the error
                backlog = self._reader.backlog()
                oldest_ms = max((oldest.age_ms for oldest in self._reader.oldest_jobs(backlog)), default=0)
                self._last_report = {
                    "batch": self._held,
                    "waiting": backlog.waiting,
                    "oldestSeconds": oldest_ms // 1000,
                }
            self._report_due_s = self._clock.now_s() + REPORT_EVERY_S
        return self._last_report
