"""Sends the jobs of the backlog to other nodes (REPLJOB) until enough of them have confirmed (GOTJOB).

The messages are marked TRANSFER, because the job is not new, and REPAIRED: a node that knows the mark confirms to all
holders, so that none of them makes another copy. Holders that do not know it get the longer list of holders.

The work is bounded: by `repair-rate`, by a window of unconfirmed jobs (`placing.window`), and by congested links, which
get nothing. A node that does not confirm is asked again, and another one with it.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.cluster.holders import lists
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.job import NOBODY, Job, NodeIds
from disqued.core.runtime.state import NodeState
from disqued.jobmessages import note_holder, send_repljob
from disqued.placing.willingness import Willingness
from disqued.placing.window import OVERHEAD_BYTES, Window
from disqued.repair.backlog import Backlog
from disqued.repair.counters import REBUILT
from disqued.repair.liveness import Liveness
from disqued.repair.rebuild import Rebuild
from disqued.repair.targets import Targets

STEP_MS: Final = 5
"""The time between two steps: each sends few jobs, so that no client waits for long."""
LOOKS_PER_STEP: Final = 50
"""Jobs of the backlog that are looked at in a step."""
MAX_ROUNDS: Final = 3
"""How often nodes are asked to take a job before it makes room for others."""
MAX_ASIDE: Final = 1000
"""How many jobs may do so. The nodes keep being asked to take them."""
ASIDE_MS: Final = 15_000
"""How often they are asked."""
AGAIN_MS: Final = 1000
"""After this time a job for which no node was found is tried again."""
_FLAGS: Final = kinds.TRANSFER | kinds.REPAIRED


class Rebuilding:
    """What one node sends to make copies again."""

    def __init__(self, state: NodeState, liveness: Liveness, backlog: Backlog) -> None:
        self._state = state
        self._liveness = liveness
        self._backlog = backlog
        self._targets = Targets()
        self._window = Window()
        self.rebuilds: dict[bytes, Rebuild] = {}
        """By job ID, in the order in which nodes were last asked."""
        self._aside: i64 = 0
        """How many of them do not count for the window."""
        self._allowed: i64 = 0
        """How many thousandths of a job may be sent now (`repair-rate`)."""
        self._allowed_ms: i64 = 0
        """When that was last computed."""
        self.next_ms: i64 = 0
        """When the next step is due; 0 for none before the next round."""

    @property
    def willingness(self) -> Willingness:
        """Which nodes take jobs."""
        return self._targets.willingness

    def clear(self) -> None:
        """Forget all jobs: they were dropped, or this node leaves."""
        for rebuild in list(self.rebuilds.values()):
            self._remove(rebuild)

    # --- sending ------------------------------------------------------------------------------------------------------

    def run_round(self) -> None:
        """Ask again for jobs that are not confirmed, and send more. Called ten times per second."""
        self._targets.refresh(self._state)
        self._ask_again()
        self.step()

    def step(self) -> None:
        """Send a few jobs."""
        state = self._state
        self._fill()
        more = bool(self._targets.free) and self._backlog.due(state.now_ms) is not None
        self.next_ms = state.now_ms + STEP_MS if more else 0

    def _allow(self) -> None:
        """Let time pass for `repair-rate`."""
        state = self._state
        rate: i64 = state.config.repair_rate
        passed_ms: i64 = min(state.now_ms - self._allowed_ms, 2 * STEP_MS)
        self._allowed_ms = state.now_ms
        self._allowed = min(self._allowed + passed_ms * rate, max(2 * STEP_MS * rate, 1000))

    def _fill(self) -> None:
        """Send jobs while there is room."""
        state = self._state
        looks: i64 = LOOKS_PER_STEP
        self._allow()
        backlog = self._backlog
        while (
            looks > 0
            and self._allowed >= 1000
            and self._targets.free
            and self._window.has_room(len(self.rebuilds) - self._aside, answering=True)
        ):
            turn = backlog.due(state.now_ms)
            if turn is None:
                return
            looks -= 1
            job = turn.jobs.pop()
            if state.lifecycle.table.get(job.id) is not job or job.id in self.rebuilds:
                continue
            if self._liveness.is_short(job) and not self._begin(job, turn.reason):
                turn.jobs.append(job)
                return

    def _begin(self, job: Job, reason: i64) -> bool:
        """Ask as many nodes as copies are missing; False if the job must wait until a link has room."""
        state = self._state
        rebuild = Rebuild(job, reason, i64(len(job.body)) + OVERHEAD_BYTES)
        if not self._ask_more(rebuild, NOBODY):
            if self._targets.waits_for_link(self._liveness.absent.holders(job) or NOBODY):
                return False
            again_ms: i64 = state.now_ms + AGAIN_MS
            self._backlog.add(job, again_ms - again_ms % 1000, reason)
            return True
        self._allowed -= 1000
        self.rebuilds[job.id] = rebuild
        self._window.add(rebuild.size_bytes)
        return True

    def _ask_more(self, rebuild: Rebuild, again: NodeIds) -> bool:
        """Ask nodes for the copies that are missing, and repeat the question to others; False if there is none."""
        state = self._state
        job = rebuild.job
        delivered = self._liveness.absent.holders(job)
        if delivered is None:
            delivered = state.holders.keep((state.view.node_id,))
        if rebuild.unconfirmed:
            delivered = state.holders.union(delivered, rebuild.unconfirmed)
        asked: list[Peer] = []
        missing = self._liveness.missing(job, rebuild.unconfirmed)
        while len(asked) < missing:
            peer = self._targets.choose(state, job, delivered)
            if peer is None:
                break
            asked.append(peer)
            delivered = state.holders.plus(delivered, peer.id)
            rebuild.unconfirmed = state.holders.plus(rebuild.unconfirmed, peer.id)
        for node_id in again:
            silent = state.view.peers.get(node_id)
            if silent is not None and silent in self._targets.free:
                asked.append(silent)
        rebuild.asked_ms = state.now_ms
        rebuild.rounds += 1
        if not asked:
            return False
        job.delivered = delivered
        send_repljob(state, job, asked, state.holders.pack(delivered), _FLAGS, joined=True)
        return True

    # --- confirmations ------------------------------------------------------------------------------------------------

    def note_confirmed(self, job: Job, peer: Peer) -> None:
        """Note that a node has a copy."""
        rebuild = self.rebuilds.get(job.id)
        if rebuild is None or rebuild.job is not job or not lists(rebuild.unconfirmed, peer.id):
            return
        state = self._state
        took_ms: i64 = state.now_ms - rebuild.asked_ms
        self.willingness.confirmed(peer, state.now_ms, took_ms)
        self._window.note_confirmed(rebuild.size_bytes, took_ms)
        rebuild.unconfirmed = state.holders.without(rebuild.unconfirmed, (peer.id,))
        note_holder(state, job, peer)
        self._liveness.absent.remove(job.id, peer.id)
        state.counters.add(REBUILT[rebuild.reason])
        self._tell_holders(job, peer)
        if not rebuild.unconfirmed or not self._liveness.is_short(job, rebuild.unconfirmed):
            self._remove(rebuild)

    def _tell_holders(self, job: Job, added: Peer) -> None:
        """Send the longer list to the holders that the new one does not tell (REPLJOB without an answer)."""
        state = self._state
        delivered = job.delivered
        assert delivered is not None
        tells = added.features & kinds.FEATURE_REPAIR
        peers: list[Peer] = []
        for node_id in delivered:
            peer = state.view.peers.get(node_id)
            if peer is None or peer is added or not peer.reachable or (tells and peer.features & kinds.FEATURE_REPAIR):
                continue
            peers.append(peer)
        if peers:
            send_repljob(state, job, peers, state.holders.pack(delivered), kinds.TRANSFER | kinds.NOREPLY)

    def _remove(self, rebuild: Rebuild) -> None:
        """Stop waiting for confirmations."""
        del self.rebuilds[rebuild.job.id]
        if rebuild.aside:
            self._aside -= 1
        else:
            self._window.remove(rebuild.size_bytes)

    def _ask_again(self) -> None:
        """For jobs that wait for long: ask other nodes, and repeat the question to those that did not confirm."""
        state = self._state
        before_ms: i64 = state.now_ms - self.willingness.confirm_timeout_ms
        due: list[Rebuild] = []
        for rebuild in self.rebuilds.values():
            if rebuild.asked_ms > before_ms:
                break
            due.append(rebuild)
        for rebuild in due:
            for node_id in rebuild.unconfirmed:
                peer = state.view.peers.get(node_id)
                if peer is not None:
                    self.willingness.silent(peer, state.now_ms, rebuild.asked_ms)
        if due:
            self._targets.refresh(state)
        for rebuild in due:
            job = rebuild.job
            is_over = state.lifecycle.table.get(job.id) is not job
            if is_over or not self._liveness.is_short(job, rebuild.unconfirmed):
                self._remove(rebuild)
                continue
            if rebuild.aside and state.now_ms - rebuild.asked_ms < ASIDE_MS:
                continue
            if rebuild.rounds >= MAX_ROUNDS and not rebuild.aside and self._aside < MAX_ASIDE:
                rebuild.aside = True
                self._aside += 1
                self._window.remove(rebuild.size_bytes)
            del self.rebuilds[job.id]
            self.rebuilds[job.id] = rebuild
            self._ask_more(rebuild, rebuild.unconfirmed)
