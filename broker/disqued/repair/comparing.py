"""Compares the jobs of this node with those of each other node, to find copies that were lost unnoticed.

Every `repair-interval` seconds, and once after a node started with jobs, two nodes compare the unfinished jobs that
both should have (`digest`):

1. One node sends its cells (DIGEST). The other one computes its own, and finds those that differ.
2. It sends the IDs of its jobs in each of these cells (CELL).
3. The first node finds jobs that the other one lacks, and jobs that the other one lists here. It answers with the IDs
   of its own jobs in the cell, so that the other node can find what is missing on this side.

A job that the other node lacks has one holder less than its list says, and is repaired like any other job. A job that
is finished here is settled: the other node gets the acknowledgement (SETACK).

Each step is a pass over all jobs, a few per turn. One runs at a time. A comparison handles up to `MOST_CELLS` cells; if
more differ, another one follows.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.job import ACKED, WAIT_REPL, Job, NodeIds
from disqued.core.jobs.walk import Walk
from disqued.core.runtime.outbox import send, tell_end
from disqued.core.runtime.state import NodeState
from disqued.jobmessages import note_holder, send_setack
from disqued.repair.backlog import Backlog
from disqued.repair.counters import COMPARED
from disqued.repair.digest import CELLS, MOST_IDS, Cell, hash_of, packed_cell, packed_digest
from disqued.repair.liveness import Liveness
from disqued.repair.rebuild import Rebuild
from disqued.repair.survey import TURN_MS

SETTLED_MS: Final = 10_000
"""Jobs must be this old to be compared."""
MOST_CELLS: Final = 256
MOST_PASSES: Final = 64
"""How many passes may wait; what comes in addition is ignored until the next comparison."""
LOOKS_PER_SLICE: Final = 200


class Pass:
    """One pass over all jobs, for a comparison with one node."""

    def __init__(self, peer_id: bytes, before_ms: i64) -> None:
        self.peer_id = peer_id
        self.before_ms: i64 = before_ms
        self.cells: list[int] | None = None
        """The cells of the other node; None if this pass computes those of this node, to send them first."""
        self.wanted: dict[int, Cell | None] | None = None
        """The cells whose jobs this pass collects, each with what the other node said of it; None if it computes the
        digest."""
        self.own: list[int] = []
        self.ids: dict[int, list[bytes]] = {}


class Comparing:
    """The comparisons of one node."""

    def __init__(self, state: NodeState, liveness: Liveness, backlog: Backlog, rebuilds: dict[bytes, Rebuild]) -> None:
        self._state = state
        self._liveness = liveness
        self._backlog = backlog
        self._rebuilds = rebuilds
        self._passes: list[Pass] = []
        self._walk = Walk()
        self._running: Pass | None = None
        self._next_ms: dict[bytes, int] = {}
        """When this node begins a comparison with each other node."""
        self._forced: dict[bytes, bool] = {}
        """The nodes with which this node begins a comparison although its ID is the higher one."""
        self.soon: bool = False
        """Whether it does so once with all of them, as soon as possible: it started with jobs."""

    @property
    def active(self) -> bool:
        """Whether a pass runs or waits."""
        return self._running is not None or len(self._passes) > 0

    def clear(self) -> None:
        """Forget everything: all jobs were dropped."""
        self._passes = []
        self._running = None

    def forget(self, peer: Peer) -> None:
        """A node is no longer a member."""
        self._next_ms.pop(peer.id, None)
        self._forced.pop(peer.id, None)

    def hurry(self) -> None:
        """Compare with all nodes now."""
        for node_id in self._next_ms:
            self._next_ms[node_id] = int(self._state.now_ms)
            self._forced[node_id] = True

    # --- beginning ----------------------------------------------------------------------------------------------------

    def visit(self) -> None:
        """Begin the comparisons that are due. Of two nodes, the one with the lower ID begins."""
        state = self._state
        now_ms = int(state.now_ms)
        interval_ms = state.config.repair_interval * 1000
        for peer in state.view.reachable:
            if not peer.features & kinds.FEATURE_REPAIR or not peer.data_known:
                continue
            next_ms = self._next_ms.get(peer.id)
            if next_ms is None:
                self._next_ms[peer.id] = now_ms + (SETTLED_MS if self.soon else interval_ms)
                self._forced[peer.id] = self.soon
            elif now_ms >= next_ms:
                self._next_ms[peer.id] = now_ms + interval_ms
                if self._forced.pop(peer.id, False) or state.view.node_id < peer.id:
                    self._add(Pass(peer.id, state.now_ms - SETTLED_MS))

    def _add(self, added: Pass) -> None:
        if len(self._passes) < MOST_PASSES:
            self._passes.append(added)

    def take_digest(self, peer: Peer, before_ms: i64, cells: list[int]) -> None:
        """Another node began a comparison."""
        if self._state.config.repair:
            compared = Pass(peer.id, before_ms)
            compared.cells = cells
            self._add(compared)

    def take_cell(self, peer: Peer, cell: Cell) -> None:
        """Another node sent the IDs of its jobs in a cell."""
        if not self._state.config.repair:
            return
        for waiting in self._passes:
            wanted = waiting.wanted
            if wanted is not None and waiting.peer_id == peer.id and waiting.before_ms == cell.before_ms:
                wanted[int(cell.number)] = cell
                return
        collected = Pass(peer.id, cell.before_ms)
        collected.wanted = {int(cell.number): cell}
        self._add(collected)

    # --- a pass -------------------------------------------------------------------------------------------------------

    def proceed(self) -> None:
        """Look at some more jobs."""
        running = self._running
        if running is None:
            if not self._passes:
                return
            running = self._passes.pop(0)
            running.own = [0] * CELLS
            self._running = running
            self._walk.begin()
        table = self._state.lifecycle.table
        looks: i64 = LOOKS_PER_SLICE
        while looks > 0:
            job = self._walk.next(table)
            if job is None:
                self._running = None
                self._end(running)
                return
            looks -= 1
            if self._is_compared(job, running):
                number = hash_of(job)
                at = number % CELLS
                if running.wanted is None:
                    running.own[at] ^= number
                elif at in running.wanted:
                    running.ids.setdefault(at, []).append(job.id)

    def _is_compared(self, job: Job, running: Pass) -> bool:
        """Whether both nodes should have a job, and it is not finished here."""
        if job.repl <= 1 or job.retry_s == 0 or job.state == ACKED or job.state == WAIT_REPL:
            return False
        return job.created_ms < running.before_ms and self._liveness.absent.may_have(job, running.peer_id)

    def _end(self, done: Pass) -> None:
        """All jobs were looked at."""
        state = self._state
        peer = state.view.peers.get(done.peer_id)
        if peer is None or not peer.reachable:
            return
        theirs = done.cells
        if done.wanted is not None:
            for number, cell in done.wanted.items():
                self._settle(peer, done, number, cell)
        elif theirs is None:
            send(state, peer, state.bus.other(kinds.DIGEST, packed_digest(done.before_ms, done.own)))
        else:
            differing = [number for number in range(CELLS) if done.own[number] != theirs[number]]
            if len(differing) > MOST_CELLS:
                self._next_ms[peer.id] = int(state.now_ms) + SETTLED_MS
                self._forced[peer.id] = True
            if differing:
                collected = Pass(peer.id, done.before_ms)
                collected.wanted = dict.fromkeys(differing[:MOST_CELLS])
                self._add(collected)

    def _settle(self, peer: Peer, done: Pass, number: int, cell: Cell | None) -> None:
        """Compare the jobs of a cell, if the other node sent its own, and send those of this node if it needs them."""
        state = self._state
        own = done.ids.get(number, [])
        if cell is not None:
            theirs = dict.fromkeys(cell.ids, True)
            for job_id in own:
                job = state.lifecycle.table.get(job_id)
                if job is not None and job_id not in theirs:
                    self._note_lost(job, peer)
            for job_id in cell.ids:
                self._note_held(job_id, peer)
        if (cell is None or not cell.is_answer) and len(own) <= MOST_IDS:
            said = Cell(done.before_ms, number, own, is_answer=cell is not None)
            send(state, peer, state.bus.other(kinds.CELL, packed_cell(said)))

    def _note_lost(self, job: Job, peer: Peer) -> None:
        """The other node does not have a job that it should have."""
        state = self._state
        delivered = job.delivered
        if delivered is None or job.state == ACKED:
            return
        lost: NodeIds = (peer.id,)
        job.delivered = state.holders.without(delivered, lost)
        self._liveness.absent.add(job, lost)
        if self._liveness.is_short(job) and job.id not in self._rebuilds:
            self._backlog.add(job, state.now_ms + self._liveness.rank(job) * TURN_MS, COMPARED)

    def _note_held(self, job_id: bytes, peer: Peer) -> None:
        """The other node has an unfinished job: tell it if the job is done, and list it otherwise."""
        state = self._state
        self._liveness.absent.remove(job_id, peer.id)
        job = state.lifecycle.table.get(job_id)
        if job is None:
            if state.events.is_done(job_id):
                tell_end(state, peer, kinds.SETACK, job_id)
        elif job.state == ACKED and not job.is_dummy:
            note_holder(state, job, peer)
            send_setack(state, job, peer)
        elif job.is_dummy:
            tell_end(state, peer, kinds.SETACK, job_id)
        elif job.state != WAIT_REPL:
            note_holder(state, job, peer)
