"""The consuming batch read: a task leases the jobs of a node, yields them as rows, and acknowledges them at its end.

A task that fails before Spark has read its last row acknowledges nothing: its jobs are delivered again after their
retry time. Once Spark has read the last row, the task acknowledges its jobs, because Spark does not tell a reader what
becomes of its rows. A failure after the read, or in another task of the stage, therefore loses them. To keep every row,
use a stream with `Trigger.AvailableNow`, which acknowledges only what is stored.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from disqued.client import ConnectionFailed
from pyspark_disque.brokers import Member
from pyspark_disque.clock import Clock, RetryDeadline
from pyspark_disque.columns import LEASED_COLUMNS, batches, leased_batches
from pyspark_disque.jobfetcher import JobFetcher
from pyspark_disque.jobreader import Backlog, JobReader, LeasedJobs
from pyspark_disque.leaserenewer import LeaseRenewer
from pyspark_disque.offsets import JobGroup
from pyspark_disque.options import Options
from pyspark_disque.snapshot import ScanFilter

if TYPE_CHECKING:
    import pyarrow as pa

STATE_WHEN_LEASED: Final = "queued"


@dataclass(frozen=True, slots=True)
class ConsumeTask:
    """One task: the node, its queues, and the maximum number of jobs to lease."""

    member: Member
    queues: tuple[str, ...]
    limit: int


def plan_consume(backlog: Backlog, options: Options, scan_filter: ScanFilter) -> list[ConsumeTask]:
    """Plan the tasks for all queued jobs, or `maxJobs`: one for each node, or several if `numPartitions` is larger."""
    left = sum(sum(lengths.values()) for lengths in backlog.lengths.values())
    left = left if options.max_jobs is None else min(left, options.max_jobs)
    per_node = max(1, (options.num_partitions or 1) // len(backlog.lengths))
    tasks: list[ConsumeTask] = []
    for member, lengths in backlog.lengths.items():
        queues = tuple(name for name in lengths if scan_filter.allows_queue(name))
        limit = min(left, sum(lengths[name] for name in queues))
        left -= limit
        bounds = [limit * part // per_node for part in range(per_node + 1)]
        tasks += [
            ConsumeTask(member, queues, last - first) for first, last in itertools.pairwise(bounds) if last > first
        ]
    return tasks if scan_filter.states else []


def run_consume(task: ConsumeTask, options: Options, columns: Sequence[str]) -> Generator[pa.RecordBatch, None, None]:
    """Yield the rows of one task, and acknowledge their jobs once Spark has read the last one."""
    clock = Clock()
    reader = JobReader(options, clock)
    renewer = LeaseRenewer(options, clock)
    fetcher = JobFetcher(options, reader, clock)
    leased: list[JobGroup] = []
    try:
        for jobs in reader.lease_at(task.member, task.queues, task.limit):
            renewer.hold(len(leased), [jobs.group], jobs.requeue_at_s)
            leased.append(jobs.group)
            yield from _batches(jobs, fetcher, columns)
        _acknowledge(reader, leased, RetryDeadline(options.give_up_after_s, clock))
    finally:
        renewer.close()
        reader.close()


def _batches(jobs: LeasedJobs, fetcher: JobFetcher, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    if set(columns) <= LEASED_COLUMNS:
        return leased_batches([jobs.group], jobs.bodies, columns)
    return batches((row._replace(state=STATE_WHEN_LEASED) for row in fetcher.rows([jobs.group])), columns)


def _acknowledge(reader: JobReader, jobs: Sequence[JobGroup], deadline: RetryDeadline) -> None:
    while True:
        try:
            reader.acknowledge(jobs)
        except ConnectionFailed as error:
            deadline.retry_or_raise(error)
        else:
            return
