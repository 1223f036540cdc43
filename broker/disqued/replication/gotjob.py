"""GOTJOB: a node has its copy of a job."""

from __future__ import annotations

from disqued.bus.frame import Frame
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.jobid import is_job_id
from disqued.core.runtime.state import NodeState
from disqued.replication.room import replication_of


def handle_gotjob(state: NodeState, peer: Peer, frame: Frame) -> None:
    """Count the node for the client that waits; other rooms hear about any other job that this node has."""
    job_id = frame.job_id
    room = replication_of(state)
    wait = room.waits.get(job_id)
    if wait is not None:
        room.note_copy_confirmed(wait, peer)
        return
    if not is_job_id(job_id):
        return
    job = state.lifecycle.table.get(job_id)
    if job is not None:
        state.events.copy_confirmed(job, peer)
