"""Leases all jobs that were queued at a given time: the meaning of `Trigger.AvailableNow` for queues.

An empty round does not mean that the drain is done. A job that moves between nodes is in no queue meanwhile, and an
unreachable node still holds its jobs. The drain is done when every member answers and no member has a queued job from
before that time, in two checks a second apart. In between, a GETJOB makes the nodes fetch jobs from each other. A node
that is the only one of its cluster needs one check.
The drain waits for an unreachable member, and for a queue that reports jobs but delivers none because it is paused,
until `giveUpAfter` has passed.

After a node failed to answer once, more jobs may be missing from the queues until their retry time is over: jobs that
the node loaded from its disk, jobs whose copies other nodes hold, and jobs of a GETJOB whose reply was lost. Nodes
report when they will requeue such a job, and the drain waits that long. A job that is not queued by then was delivered
to another consumer.
"""

from __future__ import annotations

import logging
from typing import Final

from pyspark_disque.clock import Clock
from pyspark_disque.jobreader import Backlog, JobReader, LeasedJobs

LOG: Final = logging.getLogger("pyspark_disque")
SETTLE_S: Final = 1.0
"""The time between the two empty rounds; a job moves between nodes in much less."""
PAUSE_S: Final = 0.2
REQUEUE_SLACK_S: Final = 3.0
"""A job may be requeued this much later than its node reported."""


class Drain:
    """One drain. It leases jobs created up to `until_ms`, in milliseconds since the Unix epoch."""

    def __init__(self, reader: JobReader, until_ms: int, clock: Clock, give_up_after_s: float) -> None:
        self._reader = reader
        self._until_ms = until_ms
        self._clock = clock
        self._give_up_after_s = give_up_after_s
        self._empty_since_s: float | None = None
        self._expected_until_s: dict[str, float] = {}
        self._stalled_since_s: float | None = None
        self.is_done = False

    def next_jobs(self, limit: int) -> list[LeasedJobs]:
        """Lease the next jobs, waiting for jobs that move and for unreachable nodes; return none when done.

        Raises:
            ConnectionFailed: no node answers.
        """
        while not self.is_done:
            leased = self._round(limit)
            if leased:
                return leased
            if not self.is_done:
                self._clock.sleep(PAUSE_S)
        return []

    def _round(self, limit: int) -> list[LeasedJobs]:
        backlog = self._reader.backlog()
        wanted = self._wanted(backlog)
        if wanted.waiting:
            self._empty_since_s = None
            leased = self._reader.lease(wanted, limit)
            if leased:
                self._stalled_since_s = None
            else:
                self._note_stall(
                    f"{wanted.waiting} jobs are queued, but no node delivers them; check for a paused queue"
                )
            return leased
        if backlog.unreachable:
            self._empty_since_s = None
            names = ", ".join(member.address for member in backlog.unreachable)
            self._note_stall(f"cannot reach {names}; jobs that are queued only there were not read")
            return self._reader.probe(backlog)
        self._stalled_since_s = None
        now_s = self._clock.now_s()
        settle_s = 0.0 if self._reader.is_single_node() else SETTLE_S
        if self._empty_since_s is None:
            self._empty_since_s = now_s
            found = self._reader.probe(backlog)
            if found or settle_s:
                return found
        if now_s - self._empty_since_s >= settle_s:
            self.is_done = not self._awaits_requeues(backlog)
            self._empty_since_s = None
        return []

    def _awaits_requeues(self, backlog: Backlog) -> bool:
        """Return whether a fault took jobs out of their queues that will be requeued soon."""
        if not self._reader.had_failures:
            return False
        now_s = self._clock.now_s()
        pending = self._reader.pending_requeues(backlog, self._until_ms)
        for job_id, within_s in pending.items():
            self._expected_until_s.setdefault(job_id, now_s + within_s + REQUEUE_SLACK_S)
        return any(now_s < self._expected_until_s[job_id] for job_id in pending)

    def _wanted(self, backlog: Backlog) -> Backlog:
        """Return the backlog without the queues whose oldest job is too new."""
        wanted = {
            (job.member, job.queue) for job in self._reader.oldest_jobs(backlog) if job.ctime_ms <= self._until_ms
        }
        lengths = {
            member: {queue: length for queue, length in lengths.items() if (member, queue) in wanted}
            for member, lengths in backlog.lengths.items()
        }
        return Backlog(lengths, backlog.unreachable)

    def _note_stall(self, why: str) -> None:
        """Note a round without progress; end the drain once there was none for `giveUpAfter`."""
        now_s = self._clock.now_s()
        if self._stalled_since_s is None:
            self._stalled_since_s = now_s
        if now_s - self._stalled_since_s >= self._give_up_after_s:
            LOG.warning("drain ended before all jobs were read reason=%r", why)
            self.is_done = True
