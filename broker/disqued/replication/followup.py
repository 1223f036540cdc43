"""SYNC: the copies that the client of an ADDJOB did not wait for are asked for until they are confirmed.

The job is placed and may be delivered meanwhile. Asking ends when enough nodes have confirmed, when the timeout of the
ADDJOB is over, and when the job ends. Copies that are then missing are counted; the job stays.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disqued.core.cluster.holders import lists
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.job import ACKED, Job, NodeIds
from disqued.core.runtime.state import NodeState
from disqued.core.timers.alarm import Alarm
from disqued.placing.asking import Asking
from disqued.replication.counters import SYNC_COPIES_MISSING

ASK_AGAIN_MS: Final = 500
"""How often one more node is asked, and those that did not confirm are asked again. No client waits for them."""
LONGEST_MS: Final = 60_000
"""How long copies are asked for at most: an ADDJOB without timeout would ask for as long as a node is down."""
MOST_FOLLOWED: Final = 16_384
"""How many jobs are followed. Beyond that, the copies of the oldest one count as missing."""


@mypyc_attr(acyclic=True)
class FollowUp(Alarm):
    """The copies of one job that are not confirmed yet. It keeps no job alive: it knows only the ID."""

    def __init__(self, followed: Followed, job: Job, confirmed: NodeIds, deadline_ms: i64) -> None:
        super().__init__()
        self._followed = followed
        self.job_id = job.id
        self.copies: i64 = i64(job.repl)
        self.confirmed = confirmed
        """The nodes that have the job, this one included."""
        self.deadline_ms: i64 = deadline_ms
        """In unix milliseconds."""

    def ring(self, state: NodeState) -> None:
        """Ask again, or give up."""
        del state
        self._followed.check(self)


class Followed:
    """The jobs of one node whose copies are still asked for although their clients have the reply."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self.jobs: dict[bytes, FollowUp] = {}
        """By ID, oldest first."""
        self.most: i64 = MOST_FOLLOWED

    def follow(self, job: Job, confirmed: NodeIds, deadline_ms: i64) -> None:
        """Ask for the copies of a placed job that are not confirmed yet; `deadline_ms` is 0 for never."""
        state = self._asking.state
        latest_ms: i64 = state.now_ms + LONGEST_MS
        if 0 < deadline_ms < latest_ms:
            latest_ms = deadline_ms
        earlier = self.jobs.get(job.id)
        if earlier is not None:  # of a job with the same ID that ended
            self._end(earlier)
        follow = FollowUp(self, job, confirmed, latest_ms)
        self.jobs[job.id] = follow
        self._arm(follow)
        if len(self.jobs) > self.most:
            self._give_up(next(iter(self.jobs.values())))

    def _arm(self, follow: FollowUp) -> None:
        state = self._asking.state
        state.lifecycle.timers.arm(follow, min(state.now_ms + ASK_AGAIN_MS, follow.deadline_ms))

    def check(self, follow: FollowUp) -> None:
        """Ask one more node, or the silent ones again; give up when the time is over."""
        state = self._asking.state
        job = state.lifecycle.table.get(follow.job_id)
        if job is None or job.state == ACKED:
            del self.jobs[follow.job_id]
            return
        if follow.deadline_ms <= state.now_ms:
            self._give_up(follow)
            return
        added = self._asking.one_more(job, job.delivered or follow.confirmed, spare=True)
        self._asking.repeat(job, follow.confirmed, added)
        self._arm(follow)

    def note_copy_confirmed(self, job_id: bytes, peer: Peer) -> None:
        """Note that a node has its copy; with enough copies the job is followed no longer."""
        follow = self.jobs.get(job_id)
        if follow is None or lists(follow.confirmed, peer.id):
            return
        follow.confirmed = self._asking.state.holders.plus(follow.confirmed, peer.id)
        if len(follow.confirmed) >= follow.copies:
            self._end(follow)

    def forget_confirmations(self, lost: NodeIds) -> None:
        """Ask these nodes again: they may have lost the copies that they confirmed."""
        holders = self._asking.state.holders
        for follow in self.jobs.values():
            follow.confirmed = holders.without(follow.confirmed, lost)

    def hurry(self) -> None:
        """A node can be asked again: check all jobs now."""
        state = self._asking.state
        for follow in self.jobs.values():
            state.lifecycle.timers.arm(follow, state.now_ms)

    def clear(self) -> None:
        """All jobs were dropped."""
        for follow in list(self.jobs.values()):
            self._end(follow)

    def _give_up(self, follow: FollowUp) -> None:
        state = self._asking.state
        state.counters.add(SYNC_COPIES_MISSING, follow.copies - len(follow.confirmed))
        self._end(follow)

    def _end(self, follow: FollowUp) -> None:
        self._asking.state.lifecycle.timers.disarm(follow)
        del self.jobs[follow.job_id]
