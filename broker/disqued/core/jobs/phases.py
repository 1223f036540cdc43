"""The phase of a job on one node: what it waits for, more precisely than its state.

JSCAN, QCOUNT and QSTAT name phases. A job has a phase only on the node that it waits on: its copies on other nodes have
none, so the jobs of a cluster can be counted by adding what its nodes count.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.jobs.job import ACTIVE, BCAST_QUEUED, DELAYED, LEASED, QUEUED, Job

NO_PHASE: Final = -1
IN_QUEUE: Final = 0
"""It waits in its queue to be delivered."""
WITH_WORKER: Final = 1
"""A worker of this node has it. At-most-once jobs have no lease: whether a worker still has one is not known."""
DELAYED_HERE: Final = 2
"""It waits on this node for the end of its delay."""
DEAD_LETTER: Final = 3
"""It waits in its queue, and it is a dead letter."""
HELD: Final = 4
"""This node added it, and it waits for other jobs."""
PHASES: Final = (b"queued", b"leased", b"delayed", b"dead", b"held")
"""The names, by number."""


def phase_of(job: Job) -> i64:
    """The phase of a job on this node; NO_PHASE for copies, finished jobs and those that wait for their copies."""
    state = job.state
    if state == QUEUED:
        return DEAD_LETTER if job.is_dead_letter else IN_QUEUE
    if state == ACTIVE:
        flags = job.flags
        if flags & DELAYED:
            return DELAYED_HERE
        if flags & LEASED and job.retry_s > 0:
            return WITH_WORKER
        if job.is_held and not flags & BCAST_QUEUED:
            return HELD
    return NO_PHASE
