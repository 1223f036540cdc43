"""GOTJOB: a node has its copy of a job. GOTJOBS: of many jobs."""

from __future__ import annotations

from mypy_extensions import i64

from disqued.bus.frame import LISTED_BYTES, Frame
from disqued.core.cluster.peer import Peer
from disqued.core.jobs.jobid import is_job_id
from disqued.core.runtime.state import NodeState
from disqued.replication.room import ReplicationRoom, replication_of


def handle_gotjob(state: NodeState, peer: Peer, frame: Frame) -> None:
    """Note the confirmation."""
    _confirm(state, replication_of(state), peer, frame.job_id, frame.aux)


def handle_gotjobs(state: NodeState, peer: Peer, frame: Frame) -> None:
    """Note the confirmations."""
    room = replication_of(state)
    at = frame.jobs_at
    end = frame.end
    while at < end:
        _confirm(state, room, peer, frame.listed(at), frame.listed_aux(at))
        at += LISTED_BYTES


def _confirm(state: NodeState, room: ReplicationRoom, peer: Peer, job_id: bytes, had: i64) -> None:
    """Count the node for the client that waits; other rooms hear about any other job that this node has."""
    wait = room.waits.get(job_id)
    if wait is not None:
        if wait.rivals is not None:
            wait.rivals.note(peer.id, had)
        room.note_copy_confirmed(wait, peer)
        return
    if not is_job_id(job_id):
        return
    if room.followed.jobs:
        room.followed.note_copy_confirmed(job_id, peer)
    job = state.lifecycle.table.get(job_id)
    if job is not None:
        state.events.copy_confirmed(job, peer, had)
