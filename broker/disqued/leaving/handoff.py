"""The hand-off of a node that leaves: its jobs go to the other nodes, without waiting for consumers or for expiry.

A job that is here already is handed over like one that is added to a leaving node (external replication), in messages
that every node of a Disque cluster understands, so that it works beside the original's nodes as well:

1. REPLJOB to as many nodes as the job asked to be kept by, those that hold it already first, with a list of holders
   that names them all and, still, this node. A new holder makes up for the copy that goes away.
2. Each answers GOTJOB. Nodes that refuse copies (short of memory, leaving, queue paused) say nothing: after a second
   others are asked as well, and those that are silent for long are left alone for a while (`targets`).
3. When enough of them have the job this node lets go of it, and what it was decides what one of them is told:
   queued: ENQUEUE now. Delayed: ENQUEUE after what is left of the delay. In the hands of a worker, or a copy of what
   another node cares for: nothing, the copy is queued when the retry time is over. All this depends on what the job is
   at that moment, so it may be delivered, requeued or acknowledged here while it is on offer.
4. Other holders are told that it is queued (QUEUED), which starts their retry times anew: a job is in one queue at a
   time. Nodes that were asked, did not confirm and held no copy before are told to delete it (DELJOB).

Nothing is lost when this node dies midway, or one of the others: until it lets go of a job it is a holder like others.
Nothing is delivered twice for the same reason: the dialogue before a requeueing (WILLQUEUE, QUEUED) includes it.

At-most-once jobs take a way of their own, and what is said to other nodes about any job is said in `heirs`.

Acknowledged jobs are collected as always. Where that takes more than a few seconds, because a holder does not answer,
another node is given the job and its acknowledgement (REPLJOB, SETACK) and asks that holder from then on.

Jobs whose queue is paused in input are marked HANDOVER: they are not new, so nodes of our own kind take them.

The work is bounded: some jobs and bytes are in flight at a time, a GOTJOB that comes in lets the next job out, links
that are congested are spared, and the table is walked a few thousand jobs at a time (`core.jobs.walk`).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.job import ACKED, DELIVERED, NOBODY, QUEUED, WAIT_REPL, Job
from disqued.core.jobs.walk import Walk
from disqued.core.runtime.state import NodeState
from disqued.leaving import heirs
from disqued.leaving.moved import Moved
from disqued.leaving.offer import Offer
from disqued.leaving.progress import Progress
from disqued.leaving.targets import Targets

WINDOW: Final = 1000
"""Jobs on offer at a time."""
LEAST_BYTES: Final = 64 << 10
FIRST_BYTES: Final = 256 << 10
MOST_BYTES: Final = 4 << 20
"""Bytes on offer at a time: few to begin with, more while confirmations come fast, less when they are slow, because
pings wait behind the jobs and a node whose answers are late is taken for dead. A job that is larger goes alone."""
FAST_MS: Final = 250
SLOW_MS: Final = 1000
OVERHEAD_BYTES: Final = 300
"""What a REPLJOB is beside the body, about."""
PROBES: Final = 8
"""Jobs on offer while nobody answers."""
LOOKS_PER_ROUND: Final = 5000
"""Jobs looked at every 100 ms, beside those that confirmations make room for."""
LOOKS_PER_CONFIRMATION: Final = 50
GIFTS_PER_ROUND: Final = 500
"""At-most-once jobs sent without confirmation every 100 ms."""
SETTLED_MS: Final = 2000
"""When what other nodes were about to ask of this one has long arrived."""
PATIENT_ROUNDS: Final = 3
"""How often nodes are asked to take a job before it waits for a better time."""
REFUSED_MS: Final = 5000
"""How long the jobs of a queue wait after the other nodes refused one of them."""
COLLECTIONS: Final = 2
"""Attempts to collect an acknowledged job that its holders do not answer, before others take care of it."""

_NOBODY_STAYS: Final = "no other node that stays answers"
_NO_LINK: Final = "no other node that stays is connected"
_UNWILLING: Final = "no other node takes jobs: they are short of memory or too busy to answer"
_PAUSED: Final = "the other nodes refuse the jobs of some queues: paused in input, or short of memory"
_AT_MOST_ONCE: Final = "delayed at-most-once jobs wait until they are due: no other node can wait for them"


class Handoff:
    """The hand-off of one node, from the time it begins to leave until it stays after all."""

    def __init__(self, now_ms: i64) -> None:
        self.offers: dict[bytes, Offer] = {}
        """By job ID, those asked longest ago first."""
        self.progress = Progress(now_ms)
        self.targets = Targets()
        self.moved = Moved()
        self._walk = Walk()
        self._bytes: i64 = 0
        """Size of all that is on offer."""
        self._most_bytes: i64 = FIRST_BYTES
        """What that may be."""
        self._refused: dict[bytes, int] = {}
        """Queues whose jobs are refused, and until when not to ask again."""
        self._gifts: i64 = 0
        """At-most-once jobs that may still be sent without confirmation in this round."""
        self._held: i64 = 0
        self._held_at_most_once: i64 = 0

    # --- what drives it -----------------------------------------------------------------------------------------------

    def round(self, state: NodeState) -> None:
        """Ten times per second: ask again for what was not confirmed, and go on through the table."""
        self.targets.refresh(state)
        self._ask_again(state)
        self._gifts = GIFTS_PER_ROUND
        if self._walk.over:
            self.progress.held = self._held
            self.progress.waits_for = self._reason(state)
            self._held = 0
            self._held_at_most_once = 0
            self._refused = {name: until_ms for name, until_ms in self._refused.items() if until_ms > state.now_ms}
            self._walk.begin()
        self._fill(state, LOOKS_PER_ROUND)
        if not self.targets.willing:
            self.progress.waits_for = self._reason(state)
        self.progress.sample(state.now_ms)
        self.progress.tell(state)

    def confirm(self, state: NodeState, job: Job, peer: Peer) -> None:
        """A node said that it has a job."""
        offer = self.offers.get(job.id)
        if offer is None or offer.job is not job or peer.id not in offer.asked:
            return
        took_ms: i64 = state.now_ms - offer.asked_ms
        self.targets.confirmed(peer, state.now_ms, took_ms)
        if took_ms <= FAST_MS:
            self._most_bytes = min(self._most_bytes + offer.size_bytes, MOST_BYTES)
        elif took_ms > SLOW_MS:
            self._most_bytes = max(self._most_bytes - offer.size_bytes, LEAST_BYTES)
        offer.confirmed = state.holders.plus(offer.confirmed, peer.id)
        if len(offer.confirmed) >= offer.wanted:
            self._settle(state, offer)
            self.targets.refresh(state)
            self._fill(state, LOOKS_PER_CONFIRMATION)

    def end(self, state: NodeState) -> None:
        """This node stays: what is on offer becomes a job with more copies, but for what may not have any."""
        for offer in list(self.offers.values()):
            self._withdraw(state, offer)
        state.host.log("notice", f"Not leaving any more; {self.progress.handed_over} jobs were handed over")

    # --- what goes out ------------------------------------------------------------------------------------------------

    def _fill(self, state: NodeState, looks: i64) -> None:
        """Offer jobs while there is room for more, looking at `looks` of them at most."""
        targets = self.targets
        window: i64 = WINDOW if targets.willing > 0 else PROBES
        while looks > 0 and targets.free and len(self.offers) < window and self._bytes < self._most_bytes:
            job = self._walk.next(state.lifecycle.table)
            if job is None:
                return
            looks -= 1
            if job.id not in self.offers and job.state != WAIT_REPL:
                self._consider(state, job)

    def _consider(self, state: NodeState, job: Job) -> None:
        """Do with a job what its state asks for."""
        if job.state == ACKED:
            self._consider_acknowledged(state, job)
        elif job.retry_s > 0:
            self._offer(state, job)
        elif heirs.is_deliverable(job):
            self._offer_at_most_once(state, job)
        elif job.flags & DELIVERED or state.now_ms - self.progress.began_ms >= SETTLED_MS:
            self._let_go(state, job)

    def _consider_acknowledged(self, state: NodeState, job: Job) -> None:
        """Hand over an acknowledgement that has been spread for some time without reaching everybody."""
        if job.gc_retry < COLLECTIONS:
            return
        if job.is_dummy:
            self._let_go(state, job)
        else:
            self._offer(state, job)

    def _let_go(self, state: NodeState, job: Job) -> None:
        state.lifecycle.drop(job)
        self.progress.let_go += 1

    def _offer_at_most_once(self, state: NodeState, job: Job) -> None:
        """Offer the job to nodes that can keep it without queueing it, or give it to one that can not."""
        if self._offer(state, job):
            return
        if job.state != QUEUED:
            self._held_at_most_once += 1
            return
        if self._gifts == 0:
            return
        originals = [peer for peer in self.targets.free if peer.features == 0]
        if not originals:
            return
        self._gifts -= 1
        if heirs.give(state, job, self.targets.next_of(originals)):
            state.lifecycle.drop(job)
            self.progress.handed_over += 1

    def _wanted(self, job: Job) -> i64:
        """How many nodes are to confirm."""
        if job.state == ACKED or job.retry_s == 0:
            return 1
        wanted: i64 = min(i64(job.repl), self.targets.willing)
        return max(wanted, 1)

    def _offer(self, state: NodeState, job: Job) -> bool:
        """Ask nodes to take a job; False when there are not enough that can be asked now."""
        if self._refused and self._refused.get(job.queue, 0) > state.now_ms:
            self._held += 1
            return False
        wanted = self._wanted(job)
        chosen = self.targets.choose(job, NOBODY, wanted, own_kind=job.retry_s == 0 and job.state != ACKED)
        if len(chosen) < wanted:
            self._held += 1
            return False
        asked = state.holders.keep(tuple([peer.id for peer in chosen]))
        offer = Offer(job, asked, wanted, (i64(len(job.body)) + OVERHEAD_BYTES) * i64(len(chosen)), state.now_ms)
        offer.acknowledged = job.state == ACKED
        heirs.list_holders(state, offer)
        heirs.ask(state, offer, chosen, kinds.HANDOVER)
        self.offers[job.id] = offer
        self._bytes += offer.size_bytes
        return True

    # --- what is not confirmed ----------------------------------------------------------------------------------------

    def _ask_again(self, state: NodeState) -> None:
        """Ask for what was offered a while ago: other nodes, and those that did not confirm once more."""
        before_ms: i64 = state.now_ms - self.targets.patience_ms
        due: list[Offer] = []
        for offer in self.offers.values():
            if offer.asked_ms > before_ms:
                break
            due.append(offer)
        for offer in due:
            job = offer.job
            is_done = job.state == ACKED and not offer.acknowledged
            if is_done or state.lifecycle.table.get(job.id) is not job:
                self._forget(offer)
                continue
            for node_id in offer.asked:
                peer = state.view.peers.get(node_id)
                if peer is not None and node_id not in offer.confirmed:
                    self.targets.silent(peer, state.now_ms, offer.asked_ms)
        if due:
            self.targets.refresh(state)
        for offer in due:
            if self.offers.get(offer.job.id) is offer:
                self._ask_more(state, offer)

    def _ask_more(self, state: NodeState, offer: Offer) -> None:
        """Ask as many more nodes as are missing; give up for now after some rounds."""
        job = offer.job
        live = heirs.within_reach(state, offer)
        offer.wanted = self._wanted(job)
        missing: i64 = offer.wanted - len(live)
        more: list[Peer] = []
        if missing > 0:
            more = self.targets.choose(job, offer.asked, missing, own_kind=job.retry_s == 0 and not offer.acknowledged)
        if missing <= 0 or (live and not more and offer.rounds >= PATIENT_ROUNDS):
            self._settle(state, offer)
            return
        if not more and offer.rounds >= PATIENT_ROUNDS:
            self._note_refusal(state, offer)
            self._withdraw(state, offer)
            return
        again: list[Peer] = []
        for node_id in offer.asked:
            peer = state.view.peers.get(node_id)
            if peer is not None and peer in self.targets.free and node_id not in offer.confirmed:
                again.append(peer)
        for peer in more:
            offer.asked = state.holders.plus(offer.asked, peer.id)
        heirs.list_holders(state, offer)
        heirs.ask(state, offer, more + again, kinds.HANDOVER)
        offer.asked_ms = state.now_ms
        offer.rounds += 1
        del self.offers[job.id]
        self.offers[job.id] = offer

    def _note_refusal(self, state: NodeState, offer: Offer) -> None:
        """If the nodes that did not take a job answer otherwise they refuse its queue."""
        for node_id in offer.asked:
            peer = state.view.peers.get(node_id)
            if peer is not None and self.targets.is_willing(peer, state.now_ms):
                self._refused[offer.job.queue] = int(state.now_ms) + REFUSED_MS
                return

    def _withdraw(self, state: NodeState, offer: Offer) -> None:
        """Keep the job for now. Who was asked may have a copy, which does no harm but to an at-most-once job."""
        job = offer.job
        self._forget(offer)
        if job.retry_s == 0 and not offer.acknowledged and state.lifecycle.table.get(job.id) is job:
            heirs.delete_copies(state, offer, [])
            job.delivered = offer.former

    def _forget(self, offer: Offer) -> None:
        del self.offers[offer.job.id]
        self._bytes -= offer.size_bytes

    # --- what is confirmed --------------------------------------------------------------------------------------------

    def _settle(self, state: NodeState, offer: Offer) -> None:
        """Enough nodes have the job: let go of it, unless that is not ours to do any more."""
        job = offer.job
        live = heirs.within_reach(state, offer)
        if not live:
            return
        self._forget(offer)
        if job.state == ACKED and not offer.acknowledged:
            return
        if not offer.acknowledged:
            if job.retry_s == 0 and not heirs.is_deliverable(job):
                heirs.delete_copies(state, offer, [])
                self._let_go(state, job)
                return
            heir = self.targets.next_of(live)
            heirs.appoint(state, offer, heir, live)
            if job.state != QUEUED and job.flags & DELIVERED:
                self.moved.note(job.id, heir.id, job.retry_s)
            if len(live) < job.repl:
                self.progress.short_of_copies += 1
        state.lifecycle.drop(job)
        self.progress.handed_over += 1

    def _reason(self, state: NodeState) -> str:
        """Why jobs stay, as of the last pass."""
        if not state.view.reachable:
            return _NOBODY_STAYS
        if self.targets.linked == 0:
            return _NO_LINK
        if self.targets.willing == 0:
            return _UNWILLING
        if self._refused:
            return _PAUSED
        return _AT_MOST_ONCE if self._held_at_most_once > 0 else ""
