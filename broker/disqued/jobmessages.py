"""What handlers of messages about one job share: which job is meant, who may hold it, until when, and that it is done.

Lists of holders name nodes by ID, some of which may have been forgotten since: they count no more, wherever a list is
used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import i64

from disqued.bus import kinds
from disqued.core.jobs.job import ACKED, NOBODY, NodeIds
from disqued.core.jobs.jobid import is_job_id
from disqued.core.runtime.outbox import send

if TYPE_CHECKING:
    from disqued.bus.frame import Frame
    from disqued.core.cluster.peer import Peer
    from disqued.core.jobs.job import Job
    from disqued.core.runtime.state import NodeState


def job_of(state: NodeState, frame: Frame) -> Job | None:
    """The job that a message is about; None when it is not known here, or when that is no ID of a job."""
    job_id = frame.job_id
    return state.lifecycle.table.get(job_id) if is_job_id(job_id) else None


def members_of(state: NodeState, node_ids: NodeIds) -> NodeIds:
    """Those of a list that were not forgotten; the same object if none was."""
    return state.holders.members(node_ids, state.view)


def note_holder(state: NodeState, job: Job, peer: Peer) -> None:
    """Another node told something that only holders of the job can know: it is one of them."""
    delivered = job.delivered
    if delivered is None:
        delivered = state.holders.plus(NOBODY, state.view.node_id)
    job.delivered = state.holders.plus(delivered, peer.id)


def job_held_with(state: NodeState, peer: Peer, frame: Frame) -> Job | None:
    """The job about which another holder says what it does with it: None when it is not known here, or done.

    The other one is noted as a holder; of a job that is done it is told so instead.
    """
    job = job_of(state, frame)
    if job is None:
        return None
    if job.state == ACKED:
        send_setack(state, job, [peer])
        return None
    note_holder(state, job, peer)
    return job


def take_expiry(state: NodeState, job: Job, peer: Peer) -> None:
    """Turn the seconds that a job which came from another node has left into when it ends on this node's clock.

    A second more than that is sent, because the original needs it. Between our nodes it is taken off again, or a job
    would live a second longer with every move.
    """
    left_s = job.expire_at_s
    if peer.features != 0 and left_s > 0:
        left_s -= 1
    job.expire_at_s = left_s + state.now_ms // 1000


def send_setack(state: NodeState, job: Job, peers: list[Peer]) -> None:
    """Tell nodes (SETACK) that the job is done, and how many may hold it.

    Nodes of the original never shorten their lists: told less than the full length, they would think that they know of
    more holders, and would not confirm.
    """
    delivered = job.delivered
    assert delivered is not None
    full: i64 = len(delivered)
    shown: i64 = len(members_of(state, delivered))
    frame = state.bus.about_job(kinds.SETACK, job.id, shown)
    for peer in peers:
        if shown != full and peer.features == 0:
            send(state, peer, state.bus.about_job(kinds.SETACK, job.id, full))
        else:
            send(state, peer, frame)
