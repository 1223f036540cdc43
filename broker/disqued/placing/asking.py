"""Sending a new job to the nodes that are asked to keep copies of it (REPLJOB)."""

from __future__ import annotations

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.cluster.holders import lists
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.job import ACKED, NOBODY, Job, NodeIds
from disqued.core.runtime.outbox import send_copy
from disqued.core.runtime.skipped import Skipped, has_no_room
from disqued.core.runtime.state import NodeState
from disqued.jobmessages import send_repljob
from disqued.placing.jobframes import JobFrames
from disqued.placing.targets import choose, is_slow


class Asking:
    """Asks nodes for copies of the jobs of one node."""

    def __init__(self, state: NodeState) -> None:
        self.state = state
        self._frames = JobFrames()
        self._untold = Skipped(state)
        """Jobs of which a holder does not know all others, because its link was congested when one was added."""

    def send(self, job: Job, chosen: list[Peer], message_flags: i64) -> None:
        """Send the job to nodes that it was not sent to before."""
        state = self.state
        if job.extra is None:
            send_copy(state, chosen, self._frames.repljob(state.bus, job, state.now_ms, state.holders, message_flags))
        else:
            self._send_whole(job, chosen, message_flags, joined=True)

    def _send_whole(self, job: Job, peers: list[Peer], message_flags: i64, *, joined: bool = False) -> None:
        """Send the job with its attributes, in messages of its own unless `joined`."""
        delivered = job.delivered
        assert delivered is not None
        listed = self.state.holders.pack(delivered)
        send_repljob(self.state, job, peers, listed, message_flags, joined=joined)

    def one_more(self, job: Job, holders: NodeIds, message_flags: i64 = 0, *, spare: bool = False) -> Peer | None:
        """Send the job to one node that is not among its `holders`, and list it; None if there is none.

        `spare`: choose no node whose link is congested.
        """
        state = self.state
        chosen = choose(state, job, holders, 1)
        if not chosen or (spare and is_slow(chosen[0])):
            return None
        job.delivered = state.holders.plus(holders, chosen[0].id)
        self.send(job, chosen, message_flags)
        return chosen[0]

    def repeat(self, job: Job, confirmed: NodeIds, added: Peer | None, message_flags: i64 = 0) -> bool:
        """Ask the holders that did not confirm again; if a holder was `added`, send the longer list to the others too.

        Nothing is added to a congested link: the job is waiting there already, and the longer list is sent when there
        is room (`tell_skipped`). Returns False if no holder can be asked now.
        """
        state = self.state
        asks = added is not None
        for node_id in job.delivered or NOBODY:
            peer = state.view.peers.get(node_id)
            if peer is None or peer is added:
                continue
            link = peer.link
            is_confirmed = node_id in confirmed
            if link is None or link.closed or (is_confirmed and added is None):
                continue
            asks = True
            if not link.congested:
                self._send_whole(job, [peer], message_flags | (kinds.NOREPLY if is_confirmed else 0))
            elif added is not None:
                self._untold.add(peer, [job.id])
        return asks

    def tell_skipped(self) -> None:
        """Send the longer lists to nodes whose links have room again.

        A holder that does not know another one would not tell it that the job is done.
        """
        table = self.state.lifecycle.table
        for peer, job_ids in self._untold.ready():
            for index, job_id in enumerate(job_ids):
                job = table.get(job_id)
                if job is None or job.state == ACKED or not lists(job.delivered or NOBODY, peer.id):
                    continue
                if has_no_room(peer):
                    self._untold.add(peer, job_ids[index:])
                    break
                self._send_whole(job, [peer], kinds.NOREPLY)
