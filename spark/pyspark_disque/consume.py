"""Reading that takes: a task leases the jobs of a node, hands them over as rows, and acknowledges them at its end.

A task that fails before Spark has taken its last row has acknowledged nothing: its jobs come back after their retry
time, for whoever asks then. After that row they are acknowledged, for Spark does not tell a reader what becomes of its
rows; a failure behind the read, or of another task of the stage, loses them. Who needs every row uses the stream with
`Trigger.AvailableNow`, which acknowledges what is stored.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from disqued.client import ConnectionFailed
from pyspark_disque.bodies import Bodies
from pyspark_disque.brokers import Member
from pyspark_disque.clock import Clock, Patience
from pyspark_disque.columns import GIVEN, Row, batches
from pyspark_disque.intake import Intake, Look
from pyspark_disque.leases import Leases
from pyspark_disque.ledger import Lease
from pyspark_disque.options import Options
from pyspark_disque.snapshot import Narrowed

if TYPE_CHECKING:
    import pyarrow as pa

JOBS_PER_ROUND: Final = 2000
STATE_WHEN_TAKEN: Final = "queued"


@dataclass(frozen=True, slots=True)
class TakingPart:
    """One task: the node, its queues, and how many jobs to take at most."""

    member: Member
    queues: tuple[str, ...]
    most: int


def plan_taking(look: Look, options: Options, narrowed: Narrowed) -> list[TakingPart]:
    """As many jobs as wait now or `maxJobs`; a task for each node, or several when `numPartitions` asks for more."""
    left = sum(sum(lengths.values()) for lengths in look.lengths.values())
    left = left if options.max_jobs is None else min(left, options.max_jobs)
    per_node = max(1, (options.num_partitions or 1) // len(look.lengths))
    parts: list[TakingPart] = []
    for member, lengths in look.lengths.items():
        queues = tuple(name for name in lengths if narrowed.has_queue(name))
        most = min(left, sum(lengths[name] for name in queues))
        left -= most
        bounds = [most * part // per_node for part in range(per_node + 1)]
        parts += [
            TakingPart(member, queues, last - first) for first, last in itertools.pairwise(bounds) if last > first
        ]
    return parts if narrowed.states else []


def consumed(part: TakingPart, options: Options, columns: Sequence[str]) -> Generator[pa.RecordBatch, None, None]:
    """The rows of one task; their jobs are acknowledged when Spark has taken the last one."""
    clock = Clock()
    intake = Intake(options, clock)
    leases = Leases(options, clock)
    taken: list[Lease] = []
    try:
        yield from batches(_rows(part, Bodies(options, intake, clock), intake, leases, taken, columns), columns)
        _acknowledge(intake, taken, Patience(options.give_up_after_s, clock))
    finally:
        leases.close()
        intake.close()


def _rows(
    part: TakingPart, bodies: Bodies, intake: Intake, leases: Leases, taken: list[Lease], columns: Sequence[str]
) -> Iterator[Row]:
    """Rows until enough are taken or none is left."""
    while len(taken) < part.most:
        jobs = intake.take_at(part.member, part.queues, min(part.most - len(taken), JOBS_PER_ROUND))
        if not jobs:
            return
        new = [job.lease for job in jobs]
        leases.hold(new)
        taken += new
        if set(columns) <= GIVEN:
            yield from (Row(job.lease.queue, job.lease.id, job.body, node=job.lease.node) for job in jobs)
        else:
            yield from (row._replace(state=STATE_WHEN_TAKEN) for row in bodies.rows(new))


def _acknowledge(intake: Intake, taken: Sequence[Lease], patience: Patience) -> None:
    while True:
        try:
            intake.acknowledge(taken)
        except ConnectionFailed as error:
            patience.bear(error)
        else:
            return
