"""Which holders of a job count as live: members that have not failed for longer than `repair-after`."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.cluster.holders import lists
from disqued.core.cluster.rendezvous import ranked
from disqued.core.jobs.job import ACKED, NOBODY, WAIT_REPL, Job, NodeIds
from disqued.core.runtime.state import NodeState
from disqued.repair.absent import Absent

LEAST_LIFE_MS: Final = 10_000
"""A job with less time left gets no further copies."""


class Liveness:
    """The live members as this node sees them. Results about a list of holders are kept for the next equal list."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self.absent = Absent(state.holders)
        self.gone: dict[bytes, bool] = {}
        """The members that failed for longer than `repair-after`."""
        self._list: NodeIds | None = None
        self._generation: i64 = -1
        self._live: i64 = 0
        self._free: i64 = 0

    def refresh(self) -> bool:
        """Find the members that failed long ago. True if there is one that was not among them before."""
        state = self._state
        since_ms: i64 = state.now_ms - state.config.repair_after * 1000
        gone: dict[bytes, bool] = {}
        more = False
        for peer in state.view.peers.values():
            if peer.flags & kinds.NODE_FAIL and peer.failed_ms <= since_ms:
                gone[peer.id] = True
                if peer.id not in self.gone:
                    more = True
        if more or len(gone) != len(self.gone):
            self.gone = gone
            self._list = None
        return more

    def _look(self, node_ids: NodeIds) -> None:
        """Count the live holders of a list, and the nodes that could become one."""
        view = self._state.view
        if node_ids is self._list and view.generation == self._generation:
            return
        live: i64 = 0
        for node_id in node_ids:
            peer = view.peers.get(node_id)
            if node_id == view.node_id or (peer is not None and not peer.in_handshake and node_id not in self.gone):
                live += 1
        free: i64 = 0
        for other in view.reachable:
            if not lists(node_ids, other.id):
                free += 1
        self._list = node_ids
        self._generation = view.generation
        self._live = live
        self._free = free

    def count(self, node_ids: NodeIds) -> i64:
        """The number of live nodes in a list of holders."""
        self._look(node_ids)
        return self._live

    def others(self, node_ids: NodeIds) -> i64:
        """The number of reachable nodes that are not in a list of holders."""
        self._look(node_ids)
        return self._free

    def is_short(self, job: Job, unconfirmed: NodeIds = NOBODY) -> bool:
        """Whether a job that another node can keep has too few live holders; those that are `unconfirmed` are none."""
        if job.repl <= 1 or job.retry_s == 0 or job.state == ACKED or job.state == WAIT_REPL:
            return False
        if job.expire_at_s * 1000 - self._state.now_ms < LEAST_LIFE_MS:
            return False
        return self.missing(job, unconfirmed) > 0

    def missing(self, job: Job, unconfirmed: NodeIds = NOBODY) -> i64:
        """How many copies a job lacks."""
        delivered = self.absent.holders(job)
        if delivered is None:
            return i64(job.repl) - 1
        if unconfirmed:
            delivered = self._state.holders.without(delivered, unconfirmed)
        return i64(job.repl) - self.count(delivered)

    def rank(self, job: Job) -> i64:
        """The place of this node among the live holders that can make a copy of a job; 0 is the first one."""
        state = self._state
        listed = self.absent.holders(job)
        if listed is None:
            return 0
        able = [state.view.node_id]
        able += [
            peer.id for peer in state.view.reachable if peer.features & kinds.FEATURE_REPAIR and lists(listed, peer.id)
        ]
        return 0 if len(able) == 1 else ranked(job.id, able).index(state.view.node_id)
