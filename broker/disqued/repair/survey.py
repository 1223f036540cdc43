"""A pass over all jobs that finds those with too few live holders, and corrects lists of holders.

A node that came back without its jobs is removed from the list of each job that it held, unless it got the job again
since then. The era of a job says that (`Job.era`): this node began a new era when it saw that the other one had started
again, so every job that is registered later is of that era or a later one. Which older jobs the other node was seen to
have since then is noted (`JobTable.seen`).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.core.cluster.holders import lists
from disqued.core.jobs.job import ACKED, NOBODY, WAIT_REPL, Job, NodeIds
from disqued.core.jobs.walk import Walk
from disqued.core.runtime.state import NodeState
from disqued.repair.backlog import Backlog
from disqued.repair.counters import FAILED, FORGOTTEN, MISSING, RESTARTED
from disqued.repair.liveness import Liveness
from disqued.repair.rebuild import Rebuild

LOOKS_PER_SLICE: Final = 300
LOOKS_FOR_SHORT: Final = 10
"""Looks that a job with too few holders counts as: its node for the repair must be found."""
TURN_MS: Final = 10_000
"""How long the next holder waits for the one before it to make a copy."""
_ERAS: Final = 256


def is_since(era: i64, began: i64) -> bool:
    """Whether an era is the other one or a later one. Eras are numbered from 0 again after 255."""
    return (era - began) & (_ERAS - 1) < _ERAS // 2


class Survey:
    """The pass of one node."""

    def __init__(self, state: NodeState, liveness: Liveness, backlog: Backlog) -> None:
        self._state = state
        self._liveness = liveness
        self._backlog = backlog
        self._walk = Walk()
        self.losses: dict[bytes, int] = {}
        """The nodes that lost their jobs, and the eras in which they came back."""
        self._lost: dict[int, NodeIds] = {}
        """The nodes that lost the jobs of an era."""
        self._era: i64 = 0
        self._began_ms: i64 = 0
        self.active: bool = False
        self.before: i64 = 0
        """How many jobs had too few copies when the pass began."""
        self.without_node: i64 = 0
        """Jobs with too few copies for which there is no other node."""
        self._found_without_node: i64 = 0

    def begin(self, losses: dict[bytes, int], restarted: dict[bytes, int]) -> None:
        """Begin to look at all jobs.

        Nodes that have `restarted` may have lost their jobs too: the lists are right as of an era before they did.
        """
        state = self._state
        self.before = self._backlog.count + self.without_node
        self.losses = losses
        self._lost = {}
        self._era = state.lifecycle.table.era
        for era in restarted.values():
            if is_since(self._era, era):
                self._era = (era - 1) & (_ERAS - 1)
        self._began_ms = state.now_ms
        self._found_without_node = 0
        self._backlog.clear()
        self._walk.begin()
        self.active = True

    def end(self) -> None:
        """Stop: there are no jobs any more, or all were looked at."""
        self.active = False
        self.losses = {}
        self.without_node = self._found_without_node
        self._backlog.reverse_first(self._began_ms)

    def proceed(self, rebuilds: dict[bytes, Rebuild]) -> bool:
        """Look at some more jobs. True if they were the last.

        Other nodes were asked for copies of those in `rebuilds`.
        """
        looks: i64 = LOOKS_PER_SLICE
        table = self._state.lifecycle.table
        while looks > 0:
            job = self._walk.next(table)
            if job is None:
                self.end()
                return True
            looks -= 1
            if job.repl > 1 and job.retry_s > 0 and job.state != ACKED and job.state != WAIT_REPL:
                reason: i64 = RESTARTED if self.losses and self._correct(job) else MISSING
                if not is_since(job.era, self._era):
                    job.era = self._era
                if self._liveness.is_short(job) and job.id not in rebuilds:
                    looks -= LOOKS_FOR_SHORT
                    self._note(job, reason)
        return False

    def _correct(self, job: Job) -> bool:
        """Remove the nodes that lost the job from its holders, but for those that were seen to have it since."""
        delivered = job.delivered
        if delivered is None:
            return False
        lost = self._lost_in(int(job.era))
        if lost:
            lost = self._state.holders.without(lost, self._state.lifecycle.table.seen.get(job.id, NOBODY))
        if lost:
            self._liveness.absent.add(job, lost)
        kept = self._state.holders.without(delivered, lost)
        job.delivered = kept
        return kept is not delivered

    def _lost_in(self, era: int) -> NodeIds:
        """The nodes that do not have the jobs of an era any more."""
        lost = self._lost.get(era)
        if lost is None:
            lost = tuple([node_id for node_id, began in self.losses.items() if not is_since(era, began)])
            self._lost[era] = lost
        return lost

    def _note(self, job: Job, reason: i64) -> None:
        """Add a job with too few copies to the backlog."""
        delivered = self._liveness.absent.holders(job)
        if delivered is None:
            delivered = self._state.holders.keep((self._state.view.node_id,))
        if self._liveness.others(delivered) == 0:
            self._found_without_node += 1
            return
        if reason == MISSING:
            reason = self._reason(delivered)
        self._backlog.add(job, self._began_ms + self._liveness.rank(job) * TURN_MS, reason)

    def _reason(self, delivered: NodeIds) -> i64:
        """Why a job with these holders has too few copies."""
        view = self._state.view
        for node_id in delivered:
            if not view.knows(node_id):
                return FORGOTTEN
        for node_id in self._liveness.gone:
            if lists(delivered, node_id):
                return FAILED
        return MISSING
