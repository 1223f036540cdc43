"""External replication: other nodes keep all copies of a new job and queue it.

A node does so while it leaves or is short of memory.
"""

from __future__ import annotations

from disqued.bus import kinds
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.job import Job
from disqued.core.runtime.state import NodeState
from disqued.placing.homes import best
from disqued.replication.counters import EXTERNAL_REPLICATIONS


def queue_elsewhere(state: NodeState, job: Job) -> bool:
    """Tell one of the nodes that confirmed to queue the job (ENQUEUE); False when none of them has a link now.

    The message says the delay in seconds; it counts from when the message arrives.
    """
    confirmed = job.confirmed
    assert confirmed is not None
    peers = state.view.peers
    linked: list[Peer] = []
    for node_id in confirmed:
        peer = peers.get(node_id)
        if peer is not None and peer.link is not None and not peer.link.closed:
            linked.append(peer)
    if not linked:
        return False
    if job.is_named:
        linked = best(job.id, linked, 1)
    link = linked[int(state.host.random() * len(linked))].link
    assert link is not None
    state.ready.put(link, state.bus.about_job(kinds.ENQUEUE, job.id, job.delay_s))
    state.counters.add(EXTERNAL_REPLICATIONS)
    return True
