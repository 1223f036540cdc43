"""The drain of a node that leaves: its jobs move to the other nodes, without waiting for consumers or for expiry.

A job that is already on the node is transferred like a job that is added to a leaving node (external replication), in
messages that every node of a Disque cluster understands, so the drain also works with nodes of the original:

1. The node sends REPLJOB to as many nodes as the job has copies, first to those that hold it already. The list of
   holders names all of them and, still, this node. A new holder makes up for the copy that is dropped here.
2. Each of them answers GOTJOB. Nodes that refuse copies (short of memory, leaving, queue paused) do not answer: after a
   second other nodes are asked too, and nodes that stay silent for long are not asked for a while (`targets`).
3. When enough nodes have the job, this node drops it. The state of the job at that moment decides what one new owner is
   told. Queued: ENQUEUE now. Delayed: ENQUEUE after the rest of the delay. Delivered to a worker, or a copy of a job
   that another node queues: nothing; the copy is queued when its retry time ends. Therefore a job may be
   delivered, requeued or acknowledged here while its transfer is in flight.
4. The other holders are told that it is queued (QUEUED), which restarts their retry times, so the job is in one queue
   at a time. Nodes that were asked, did not confirm and held no copy before are told to delete it (DELJOB).

No job is lost if this node or another one dies during the drain: until this node drops a job it is a holder like any
other. No job is delivered twice for the same reason: the messages before a requeueing (WILLQUEUE, QUEUED) include it.

At-most-once jobs are handled differently; `newowners` explains how, and has all messages about a job.

Acknowledged jobs are collected as always. If that takes more than a few seconds because a holder does not answer,
another node gets the job and its acknowledgement (REPLJOB, SETACK) and asks that holder from then on.

REPLJOBs of a drain are marked TRANSFER: the jobs are not new, so nodes of our own kind take them even if their queue is
paused for input.

Queued jobs with a priority above 0 go first (`urgent`); the others go in the order of the table.

The work is bounded: transfers in flight have a window (`inflight`), a GOTJOB makes room for the next transfer,
congested links get nothing, and the table is walked a few thousand jobs at a time (`core.jobs.walk`).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.job import ACKED, DELIVERED, NOBODY, QUEUED, WAIT_REPL, Job
from disqued.core.jobs.walk import Walk
from disqued.core.runtime.state import NodeState
from disqued.leaving import newowners
from disqued.leaving.forwarding import ForwardingTable
from disqued.leaving.inflight import InFlight
from disqued.leaving.progress import Progress
from disqued.leaving.reasons import reason
from disqued.leaving.targets import Targets
from disqued.leaving.transfer import Transfer
from disqued.leaving.urgent import Urgent
from disqued.placing.window import OVERHEAD_BYTES

LOOKS_PER_ROUND: Final = 5000
"""Jobs looked at every 100 ms, beside those for which confirmations make room."""
LOOKS_PER_CONFIRMATION: Final = 50
UNCONFIRMED_PER_ROUND: Final = 500
"""At-most-once jobs sent without confirmation every 100 ms."""
SETTLED_MS: Final = 2000
"""The time after which all messages that other nodes had sent before they knew that this node leaves have arrived."""
MAX_ROUNDS: Final = 3
"""How often nodes are asked to take a job before it is left for a later pass."""
REFUSED_MS: Final = 5000
"""How long the jobs of a queue are not transferred after the other nodes refused one of them."""
COLLECTIONS: Final = 2
"""Attempts to collect an acknowledged job whose holders do not answer, before it is transferred to other nodes."""


class Drain:
    """The drain of one node, from the time it begins to leave until it stays after all."""

    def __init__(self, now_ms: i64) -> None:
        self.in_flight = InFlight()
        self.progress = Progress(now_ms)
        self.targets = Targets()
        self.forwarding = ForwardingTable()
        self._urgent = Urgent()
        self._walk = Walk()
        self._refused_until_ms: dict[bytes, int] = {}
        """Queues whose jobs the other nodes refuse, and when they are asked again."""
        self._unconfirmed_left: i64 = 0
        """At-most-once jobs that may still be sent without confirmation in this round."""
        self._without_target: i64 = 0
        """Jobs for which this pass over the table has found no node."""
        self._at_most_once_left: i64 = 0
        """Delayed at-most-once jobs that this pass had to leave here."""

    # --- what drives it -----------------------------------------------------------------------------------------------

    def run_round(self, state: NodeState) -> None:
        """Ask again for jobs that are not confirmed, and continue through the table. Called ten times per second."""
        self.targets.refresh(state)
        self._ask_again(state)
        self._unconfirmed_left = UNCONFIRMED_PER_ROUND
        if self._walk.over:
            self._end_pass(state)
        self._fill(state, LOOKS_PER_ROUND)
        if not self.targets.willing:
            self.progress.waits_for = self._reason(state)
        self.progress.sample(state.now_ms)
        self.progress.log(state)

    def _end_pass(self, state: NodeState) -> None:
        """Publish what the pass over the table has found, and begin the next one."""
        self.progress.without_target = self._without_target
        self.progress.waits_for = self._reason(state)
        self._without_target = 0
        self._at_most_once_left = 0
        refused = self._refused_until_ms
        self._refused_until_ms = {name: until_ms for name, until_ms in refused.items() if until_ms > state.now_ms}
        self._walk.begin()

    def _reason(self, state: NodeState) -> str:
        return reason(
            state,
            self.targets,
            queues_refused=bool(self._refused_until_ms),
            at_most_once_left=self._at_most_once_left > 0,
        )

    def note_confirmed(self, state: NodeState, job: Job, peer: Peer) -> None:
        """Note that a node has a job; with enough confirmations the transfer is complete, and others may begin."""
        transfer = self.in_flight.transfers.get(job.id)
        if transfer is None or transfer.job is not job or peer.id not in transfer.asked:
            return
        took_ms: i64 = state.now_ms - transfer.asked_ms
        self.targets.willingness.confirmed(peer, state.now_ms, took_ms)
        self.in_flight.note_confirmed(transfer, took_ms)
        transfer.confirmed = state.holders.plus(transfer.confirmed, peer.id)
        if len(transfer.confirmed) >= transfer.wanted:
            self._finish(state, transfer)
            self.targets.refresh(state)
            self._fill(state, LOOKS_PER_CONFIRMATION)

    def cancel(self, state: NodeState) -> None:
        """This node stays: jobs in flight become jobs with more copies, except at-most-once jobs."""
        for transfer in list(self.in_flight.transfers.values()):
            self._withdraw(state, transfer)
        state.host.log("notice", f"Not leaving any more: transferred={self.progress.transferred}")

    # --- jobs that are not in flight yet ------------------------------------------------------------------------------

    def _fill(self, state: NodeState, looks: i64) -> None:
        """Begin transfers while there is room for more, looking at `looks` jobs at most."""
        targets = self.targets
        answering = targets.willing > 0
        while looks > 0 and targets.free and self.in_flight.has_room(answering=answering):
            searching = not self._urgent.over
            job = self._next(state, searching=searching)
            if job is None and not searching:
                return
            looks -= 1
            if job is not None and job.id not in self.in_flight.transfers and job.state != WAIT_REPL:
                self._consider(state, job)

    def _next(self, state: NodeState, *, searching: bool) -> Job | None:
        """The next job to consider. None: the pass is over, or the search for urgent jobs found none yet."""
        lifecycle = state.lifecycle
        if searching:
            job = self._urgent.next(lifecycle.queues)
            return job if job is not None and lifecycle.table.get(job.id) is job else None
        return self._walk.next(lifecycle.table)

    def _consider(self, state: NodeState, job: Job) -> None:
        """Transfer, send or drop a job, as its state requires."""
        if job.state == ACKED:
            self._consider_acknowledged(state, job)
        elif job.retry_s > 0:
            self._begin(state, job)
        elif newowners.is_deliverable(job):
            self._consider_at_most_once(state, job)
        elif job.flags & DELIVERED or state.now_ms - self.progress.began_ms >= SETTLED_MS:
            self._drop(state, job)

    def _consider_acknowledged(self, state: NodeState, job: Job) -> None:
        """Transfer an acknowledged job if some holders have not answered for a while."""
        if job.gc_retry < COLLECTIONS:
            return
        if job.is_dummy:
            self._drop(state, job)
        else:
            self._begin(state, job)

    def _consider_at_most_once(self, state: NodeState, job: Job) -> None:
        """Transfer the job to nodes that can keep it without queueing it, or send it to one that cannot."""
        if self._begin(state, job):
            return
        if job.state != QUEUED:
            self._at_most_once_left += 1
            return
        if self._unconfirmed_left == 0:
            return
        originals = [peer for peer in self.targets.free if peer.connected and peer.features == 0]
        if not originals:
            return
        self._unconfirmed_left -= 1
        if newowners.send_unconfirmed(state, job, self.targets.next_of(originals)):
            self.progress.transferred += 1

    def _drop(self, state: NodeState, job: Job) -> None:
        """Drop a job that no other node needs."""
        state.lifecycle.drop(job)
        self.progress.dropped += 1

    def _begin(self, state: NodeState, job: Job) -> bool:
        """Ask nodes to take a job; False when not enough nodes can be asked now."""
        if self._refused_until_ms and self._refused_until_ms.get(job.queue, 0) > state.now_ms:
            self._without_target += 1
            return False
        wanted = self._wanted(state, job)
        chosen = self.targets.choose(state, job, NOBODY, wanted, own_kind=job.retry_s == 0 and job.state != ACKED)
        if len(chosen) < wanted:
            self._without_target += 1
            return False
        asked = state.holders.keep(tuple([peer.id for peer in chosen]))
        size_bytes: i64 = (i64(len(job.body)) + OVERHEAD_BYTES) * i64(len(chosen))
        transfer = Transfer(job, asked, wanted, size_bytes, state.now_ms)
        transfer.acknowledged = job.state == ACKED
        newowners.list_holders(state, transfer)
        newowners.ask(state, transfer, chosen, kinds.TRANSFER)
        self.in_flight.add(transfer)
        return True

    def _wanted(self, state: NodeState, job: Job) -> i64:
        """How many nodes must confirm."""
        if job.state == ACKED or job.retry_s == 0:
            return 1
        wanted: i64 = min(i64(job.repl), self.targets.willing_for(state, job))
        return max(wanted, 1)

    # --- jobs that are not confirmed ----------------------------------------------------------------------------------

    def _ask_again(self, state: NodeState) -> None:
        """For transfers that wait for long: ask other nodes, and repeat the question to those that did not confirm."""
        due: list[Transfer] = self.in_flight.asked_before(state.now_ms - self.targets.willingness.confirm_timeout_ms)
        for transfer in due:
            job = transfer.job
            is_done = job.state == ACKED and not transfer.acknowledged
            if is_done or state.lifecycle.table.get(job.id) is not job:
                self.in_flight.remove(transfer)
                continue
            for node_id in transfer.asked:
                peer = state.view.peers.get(node_id)
                if peer is not None and node_id not in transfer.confirmed:
                    self.targets.willingness.silent(peer, state.now_ms, transfer.asked_ms)
        if due:
            self.targets.refresh(state)
        for transfer in due:
            if self.in_flight.has(transfer):
                self._ask_more(state, transfer)

    def _ask_more(self, state: NodeState, transfer: Transfer) -> None:
        """Ask as many more nodes as are missing; after some rounds, finish with fewer copies or give up for now."""
        job = transfer.job
        owners = newowners.connected_owners(state, transfer)
        transfer.wanted = self._wanted(state, job)
        missing: i64 = transfer.wanted - len(owners)
        more: list[Peer] = []
        if missing > 0:
            own_kind = job.retry_s == 0 and not transfer.acknowledged
            more = self.targets.choose(state, job, transfer.asked, missing, own_kind=own_kind)
        if missing <= 0 or (owners and not more and transfer.rounds >= MAX_ROUNDS):
            self._finish(state, transfer)
            return
        if not more and transfer.rounds >= MAX_ROUNDS:
            self._note_refusal(state, transfer)
            self._withdraw(state, transfer)
            return
        again: list[Peer] = []
        for node_id in transfer.asked:
            peer = state.view.peers.get(node_id)
            if peer is not None and peer in self.targets.free and node_id not in transfer.confirmed:
                again.append(peer)
        for peer in more:
            transfer.asked = state.holders.plus(transfer.asked, peer.id)
        newowners.list_holders(state, transfer)
        newowners.ask(state, transfer, more + again, kinds.TRANSFER)
        self.in_flight.asked_again(transfer, state.now_ms)

    def _note_refusal(self, state: NodeState, transfer: Transfer) -> None:
        """If nodes that did not take the job confirm other jobs, they refuse the job's queue."""
        for node_id in transfer.asked:
            peer = state.view.peers.get(node_id)
            if peer is not None and self.targets.is_willing(peer, state.now_ms):
                self._refused_until_ms[transfer.job.queue] = int(state.now_ms) + REFUSED_MS
                return

    def _withdraw(self, state: NodeState, transfer: Transfer) -> None:
        """Keep the job for now.

        Nodes that were asked may have a copy. That is only harmful for at-most-once jobs, so these copies are deleted.
        """
        job = transfer.job
        self.in_flight.remove(transfer)
        if job.retry_s == 0 and not transfer.acknowledged and state.lifecycle.table.get(job.id) is job:
            newowners.delete_copies(state, transfer, [])
            job.delivered = transfer.former

    # --- jobs that are confirmed --------------------------------------------------------------------------------------

    def _finish(self, state: NodeState, transfer: Transfer) -> None:
        """Drop a job that enough nodes have, unless it was acknowledged meanwhile: then it is collected here."""
        job = transfer.job
        owners = newowners.connected_owners(state, transfer)
        if not owners:
            return
        self.in_flight.remove(transfer)
        if job.state == ACKED and not transfer.acknowledged:
            return
        if not transfer.acknowledged:
            if job.retry_s == 0 and not newowners.is_deliverable(job):
                newowners.delete_copies(state, transfer, [])
                self._drop(state, job)
                return
            owner = self.targets.next_of(owners)
            state.lifecycle.journal.move(job)
            state.lifecycle.drop(job)  # first, so that the owner of an at-most-once job is told when that is logged
            newowners.assign(state, transfer, owner, owners)
            if job.state != QUEUED and job.flags & DELIVERED:
                self.forwarding.add(job.id, owner.id, job.retry_s)
            if len(owners) < job.repl:
                self.progress.short_of_copies += 1
        else:
            state.lifecycle.drop(job)
        self.progress.transferred += 1
