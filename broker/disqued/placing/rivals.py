"""Two nodes that add the same job at once (ADDJOB ID, dead letters, moves): which of them has it queued.

Each node that adds the job sends it to its homes, and a home that has it says so when it confirms. If another node
added it a while ago (HAD), it is queued there or was delivered, so this node does not queue it again. If another node
added it a moment ago (RACED), the home does not know which of the two may queue it: their messages cross, and each may
be the first at some homes. Then the home with the highest score decides for all: the node that it knew first has the
job queued, and exactly one was first there.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.bus import kinds
from disqued.core.cluster.rendezvous import ranked
from disqued.core.jobs.job import ACTIVE, DELIVERED, LEASED, POSTPONED, WAIT_REPL, Job

RACE_MS: Final = 1000
"""How long after a node got a job another node may still be adding the same one."""
_SETTLED: Final = DELIVERED | LEASED | POSTPONED


@mypyc_attr(acyclic=True)
class Rivals:
    """What the homes of a job say about other nodes that added it."""

    def __init__(self, job_id: bytes) -> None:
        self._job_id = job_id
        self._answers: dict[bytes, int] = {}
        """The first answer of each home, by its ID: HAD, RACED, or 0."""

    def note(self, node_id: bytes, answer: i64) -> None:
        """A home has the job; this node may be one itself, and then says 0."""
        self._answers.setdefault(node_id, int(answer))

    @property
    def none(self) -> bool:
        """Whether each home that answered got the job from this node first."""
        return not any(self._answers.values())

    @property
    def had(self) -> bool:
        """Whether another node added the job a while ago."""
        return kinds.HAD in self._answers.values()

    @property
    def won(self) -> bool:
        """Whether another node has the job queued, or will, so that this node must not."""
        answers = self._answers
        if self.had or kinds.RACED not in answers.values():
            return self.had
        return answers[ranked(self._job_id, list(answers))[0]] == kinds.RACED


def answer_about(known: Job, received: Job, now_ms: i64) -> i64:
    """What a node that has a job says to a node that sends it (GOTJOB): HAD, RACED, or 0 if the same node added both.

    The creation times of jobs with given IDs differ if they were added by different nodes.
    """
    if known.ctime == received.ctime or not known.is_named:
        return 0
    return kinds.RACED if is_being_added(known, now_ms) else kinds.HAD


def is_being_added(job: Job, now_ms: i64) -> bool:
    """Whether the node that added the job may not have had it queued yet."""
    if job.state == WAIT_REPL:
        return True
    if job.state != ACTIVE or job.flags & _SETTLED or job.retry_s == 0:
        return False
    since_ms: i64 = job.requeue_at_ms - (job.delay_s + job.retry_s) * 1000
    return now_ms - since_ms < RACE_MS
