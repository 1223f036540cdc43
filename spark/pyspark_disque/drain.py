"""Until all is taken that waited at a certain time: what `Trigger.AvailableNow` means for queues.

An empty round is not the end. Jobs move between nodes, and while they do they are in no queue; a node that is away has
its jobs with it. So the end is: every member answers, at none a job waits that was created by then, and both is so
again a second later, with a GETJOB in between, which has nodes fetch what others hold. A member that does not come back
is waited for as long as `giveUpAfter` says, and so is a queue that shows jobs and gives none, for it is paused.

When a node did not answer once, there is more: the jobs that it read from its disk, those whose copies others have, and
those of a GETJOB whose answer was lost are in no queue until their retry time is over. Nodes tell when that is, and so
long it is waited for each of them; a job that is not queued then is in the hands of another consumer.
"""

from __future__ import annotations

import logging
from typing import Final

from pyspark_disque.clock import Clock
from pyspark_disque.intake import Intake, Look, Taken

LOG: Final = logging.getLogger("pyspark_disque")
QUIET_S: Final = 1.0
"""Between the two looks that have to agree; jobs are on their way for much shorter."""
PAUSE_S: Final = 0.2
LATE_S: Final = 3.0
"""By so much a job may be queued late."""


class Drain:
    """One run that ends. `until_ms` is the creation time of the last jobs to take, in unix milliseconds."""

    def __init__(self, intake: Intake, until_ms: int, clock: Clock, give_up_after_s: float) -> None:
        self._intake = intake
        self._until_ms = until_ms
        self._clock = clock
        self._give_up_after_s = give_up_after_s
        self._quiet_since_s: float | None = None
        self._expected_until_s: dict[str, float] = {}
        self._stuck_since_s: float | None = None
        self.is_over = False

    def take(self, limit: int) -> list[Taken]:
        """The next jobs; none when it is over. Waits for what is on its way or away.

        Raises:
            ConnectionFailed: no node answers.
        """
        while not self.is_over:
            taken = self._round(limit)
            if taken:
                return taken
            if not self.is_over:
                self._clock.sleep(PAUSE_S)
        return []

    def _round(self, limit: int) -> list[Taken]:
        look = self._intake.look()
        old = self._old(look)
        if old.waiting:
            self._quiet_since_s = None
            taken = self._intake.take(old, limit)
            if taken:
                self._stuck_since_s = None
            else:
                self._note_stuck(f"{old.waiting} jobs are queued, but no node hands them out: is the queue paused?")
            return taken
        if look.away:
            self._quiet_since_s = None
            names = ", ".join(member.address for member in look.away)
            self._note_stuck(f"{names} can not be reached: jobs that wait only there were not read")
            return self._intake.poke(look)
        self._stuck_since_s = None
        now_s = self._clock.now_s()
        if self._quiet_since_s is None:
            self._quiet_since_s = now_s
            return self._intake.poke(look)
        if now_s - self._quiet_since_s >= QUIET_S:
            self.is_over = not self._is_any_coming_back(look)
            self._quiet_since_s = None
        return []

    def _is_any_coming_back(self, look: Look) -> bool:
        """Whether a fault took jobs out of their queues that are to be there again soon."""
        if not self._intake.was_disturbed:
            return False
        now_s = self._clock.now_s()
        coming = self._intake.coming_back(look, self._until_ms)
        for job_id, within_s in coming.items():
            self._expected_until_s.setdefault(job_id, now_s + within_s + LATE_S)
        return any(now_s < self._expected_until_s[job_id] for job_id in coming)

    def _old(self, look: Look) -> Look:
        """What waits, without the queues whose oldest job is too new."""
        old = {(head.member, head.queue) for head in self._intake.heads(look) if head.ctime_ms <= self._until_ms}
        lengths = {
            member: {queue: length for queue, length in lengths.items() if (member, queue) in old}
            for member, lengths in look.lengths.items()
        }
        return Look(lengths, look.away)

    def _note_stuck(self, why: str) -> None:
        """End it when nothing has moved for so long."""
        now_s = self._clock.now_s()
        if self._stuck_since_s is None:
            self._stuck_since_s = now_s
        if now_s - self._stuck_since_s >= self._give_up_after_s:
            LOG.warning("the query ends although not all was read: %s", why)
            self.is_over = True
